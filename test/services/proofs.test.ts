/**
 * What an envelope says of its own proof is judged alike by every service (spec 4.2 security.v1, section 8;
 * section 11, C15): `source_trust: "signed"` and `authorization.scheme`.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createBeliefDecider, DEFAULT_BELIEF_SETTINGS } from "@harmovela/belief-tracker";
import { createTaskDecider, DEFAULT_TASK_SETTINGS } from "@harmovela/delegation-coordinator";
import type {
  Decider,
  Decision,
  Envelope,
  EventEntry,
  Judged,
  SignatureFacts,
} from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { createManagerDecider, DEFAULT_MANAGER_SETTINGS } from "@harmovela/interruption-manager";
import { createAttesterDecider, DEFAULT_ATTESTER_SETTINGS } from "@harmovela/provenance-attester";

const NOW = Date.UTC(2026, 10, 30, 10);
const SECURITY = "harmovela.security.v1";
const GOOD: SignatureFacts = { kind: "verified", kid: "k1", from: NOW - 1 };

interface Settings {
  authenticated?: boolean;
  defaultProfiles?: string[];
}

type Service = <Result>(
  settings: Settings,
  use: <State>(decider: Decider<State>) => Result,
) => Result;

/** Each service, and what may be sent to it of every family that it judges. */
const SERVICES: readonly [string, Service, [type: string, more?: Partial<Envelope>][]][] = [
  [
    "delegation-coordinator",
    (settings, use) => use(createTaskDecider({ ...DEFAULT_TASK_SETTINGS, ...settings })),
    [
      ["task.submitted", { task_id: "t" }],
      ["session.opened", { payload: { session_id: "s", version: "0.2" } }],
      ["command.requested", { target: "agent:b", correlation_id: "c" }],
      ["reasoning.summary"],
    ],
  ],
  [
    "belief-tracker",
    (settings, use) => use(createBeliefDecider({ ...DEFAULT_BELIEF_SETTINGS, ...settings })),
    [
      ["memory.fact.added", { payload: { fact_id: "f", value: 1 } }],
      ["memory.fact.invalidated", { payload: { fact_id: "f" } }],
      ["context.retrieval.started"],
    ],
  ],
  [
    "interruption-manager",
    (settings, use) =>
      use(createManagerDecider({ ...DEFAULT_MANAGER_SETTINGS, externalTasks: true, ...settings })),
    [["interruption.requested", { task_id: "t", interruption_policy: "save_and_stop" }]],
  ],
  [
    "provenance-attester",
    (settings, use) => use(createAttesterDecider({ ...DEFAULT_ATTESTER_SETTINGS, ...settings })),
    [["provenance.attestation.added", { causation_id: "unseen" }]],
  ],
];

function sent(type: string, more: Partial<Envelope> = {}): Envelope {
  return {
    spec_version: "0.2",
    id: "evt_1",
    type,
    source: "agent:a",
    created_at: new Date(NOW).toISOString(),
    payload: {},
    ...more,
  };
}

function decide(
  service: Service,
  settings: Settings,
  envelope: Envelope,
  { signature, opened = [] }: { signature?: SignatureFacts; opened?: EventEntry[] } = {},
): Decision {
  return service(settings, (decider) => {
    const state = decider.initial();
    for (const entry of opened) {
      decider.evolve(state, entry);
      decider.observe?.(state, "tasks", entry);
    }
    const input: Judged = {
      envelope,
      tenant: "acme",
      source: envelope.source,
      intake: 9,
      ...(signature === undefined ? {} : { signature }),
    };
    return decider.decide(state, input, { now: NOW, deriveId: (index) => `d-${index}` });
  });
}

function refusalOf(decision: Decision): JsonObject | undefined {
  if (!("reject" in decision)) return undefined;
  const { code, details } = decision.reject;
  return { code, check: details?.check ?? null, reason: details?.reason ?? null };
}

function verdictOf(decision: Decision): JsonObject {
  assert.ok("accept" in decision || "begin" in decision, JSON.stringify(decision));
  return decision.verdict ?? {};
}

const UNPROVED: [SignatureFacts | undefined, string][] = [
  [undefined, "missing"],
  [{ kind: "malformed" }, "malformed"],
  [{ kind: "unknown_key", kid: "k" }, "unknown_key"],
  [{ kind: "forged", kid: "k" }, "forged"],
  [{ kind: "verified", kid: "k", from: NOW + 1 }, "not_yet_valid"],
  [{ kind: "verified", kid: "k", from: 0, until: NOW }, "expired"],
  [{ kind: "verified", kid: "k", from: 0, revokedAt: NOW }, "revoked"],
];

/** A session of agent:a that has negotiated security.v1, as the log of `tasks` shows it. */
function ready(): EventEntry[] {
  const session = { session_id: "s", payload: { session_id: "s", version: "0.2" } };
  const profiles = { capabilities: { profiles: [SECURITY] } };
  const events = [
    sent("session.opened", { id: "o", ...session }),
    sent("session.ready", {
      id: "r",
      source: DEFAULT_TASK_SETTINGS.service,
      causation_id: "o",
      session_id: "s",
      payload: { session_id: "s", version: "0.2", ...profiles },
    }),
  ];
  return events.map((envelope, index) => ({
    kind: "event",
    seq: index + 1,
    tenant: "acme",
    cause: index === 0 ? { in: 1 } : { owed: "o" },
    at: NOW,
    epoch: 1,
    prev: index,
    seen: {},
    envelope,
  }));
}

for (const [name, service, types] of SERVICES) {
  describe(`${name}: what says that it is signed`, () => {
    for (const [type, more] of types) {
      const signed = sent(type, { ...more, source_trust: "signed" });

      test(`is refused without a proof where senders are proved: ${type}`, () => {
        for (const settings of [{ authenticated: true }, { defaultProfiles: [SECURITY] }]) {
          for (const [signature, reason] of UNPROVED) {
            const decision = decide(service, settings, signed, signature && { signature });
            assert.deepEqual(refusalOf(decision), {
              code: "unauthorized",
              check: "signature",
              reason,
            });
          }
        }
      });

      test(`is taken with one, and the verdict names the key: ${type}`, () => {
        const decision = decide(service, { authenticated: true }, signed, { signature: GOOD });
        assert.equal(verdictOf(decision).signed_by, "k1");
        assert.equal(verdictOf(decision).flags, undefined);
      });

      test(`is taken without one elsewhere, with a flag: ${type}`, () => {
        for (const [signature, reason] of UNPROVED) {
          const verdict = verdictOf(decide(service, {}, signed, signature && { signature }));
          assert.ok((verdict.flags as string[]).includes(`signature_${reason}`));
          assert.equal(verdict.signed_by, undefined);
        }
        const plain = verdictOf(decide(service, {}, sent(type, more), { signature: GOOD }));
        assert.equal(plain.signed_by, undefined, "what does not say so is not told to be");
      });

      test(`an authorization that nobody here can check is refused: ${type}`, () => {
        for (const scheme of ["bearer", "JWS-DETACHED", "none", "jws"]) {
          const authorization = { scheme, token: "t" };
          const decision = decide(service, {}, sent(type, { ...more, authorization }));
          assert.deepEqual(refusalOf(decision), {
            code: "unauthorized",
            check: "scheme",
            reason: null,
          });
        }
        const authorization = { scheme: "jws-detached", token: "t" };
        verdictOf(decide(service, {}, sent(type, { ...more, authorization })));
      });
    }

    test("is held to what its session has negotiated", () => {
      const [type, more] = types.at(-1) ?? [""];
      const signed = sent(type, { ...more, source_trust: "signed", session_id: "s" });
      const decision = decide(service, {}, signed, { opened: ready() });
      assert.equal(refusalOf(decision)?.check, "signature");
    });
  });
}
