/**
 * Tenants that use the same names and ids for everything: each service decides, owes and answers for one of
 * them exactly as if the other were not there, although the other was always a step ahead.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTracker } from "@harmovela/belief-tracker";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain, DomainEntry, Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { ReadContext, ServiceDefinition } from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import { Given } from "@harmovela/testkit";

const NOW = Date.UTC(2026, 10, 30, 10);
const [A, B] = ["agent:a", "agent:b"];

/** One thing that happens: to the service itself, or in a log that it observes. */
interface Step {
  envelope: Envelope;
  seenIn?: Domain;
}

let made = 0;
function says(
  type: string,
  source: string,
  payload: JsonObject,
  more: Partial<Envelope> = {},
): Step {
  made += 1;
  const created_at = new Date(NOW).toISOString();
  const id = `evt_${made}`;
  return { envelope: { spec_version: "0.2", id, type, source, created_at, payload, ...more } };
}
const seen = (seenIn: Domain, step: Step): Step => ({ ...step, seenIn });

const task = (name: string, id: string, more: Partial<Envelope> = {}, payload: JsonObject = {}) =>
  says(`task.${name}`, A, payload, { task_id: id, ...more });
const offer = (name: string, source: string, more: Partial<Envelope> = {}) =>
  says(`delegation.${name}`, source, name === "rejected" ? { reason: "busy" } : {}, {
    task_id: "c",
    parent_task_id: "t",
    delegated_by: A,
    delegated_to: B,
    ...more,
  });
const fact = (source: string, value: number, more: Partial<Envelope> = {}) =>
  says("memory.fact.added", source, { fact_id: "f", value }, more);
const ofSession = { session_id: "s" };
const request = { target: B, correlation_id: "corr" };

const base = fact(A, 1);
const conclusion = says(
  "memory.fact.added",
  B,
  { fact_id: "g", value: 2 },
  {
    evidence_chain: [{ source: A, id: base.envelope.id }],
    causation_id: base.envelope.id,
  },
);
const attested = says(
  "provenance.attestation.added",
  B,
  { attestor: B, method: "m" },
  {
    causation_id: base.envelope.id,
  },
);

const SCENES: readonly [
  ServiceDefinition<unknown>,
  readonly Step[],
  Record<string, JsonObject[]>,
][] = [
  [
    createCoordinator() as ServiceDefinition<unknown>,
    [
      says("session.opened", A, { session_id: "s", version: "0.2" }, ofSession),
      task("submitted", "t", ofSession, { timeout_ms: 60_000 }),
      task("accepted", "t", ofSession),
      task("started", "t", ofSession),
      task("submitted", "t"),
      offer("requested", A),
      offer("accepted", B),
      offer("handoff.completed", A),
      says("task.started", B, {}, { task_id: "c" }),
      says("subscription.requested", A, { types: ["task.*"] }, ofSession),
      says("command.requested", A, { command: "x" }, request),
      says("command.requested", A, { command: "x" }, request),
      says("query.requested", A, { query_scope: "x" }, request),
      says("command.accepted", B, { correlation_id: "corr" }, { correlation_id: "corr" }),
      says("adaptation.budget.established", A, { budget_id: "b", limit: 10 }),
      task("progress", "t", { ...ofSession, budget_id: "b", budget_cost: 7 }),
      task("progress", "t", { ...ofSession, budget_id: "b", budget_cost: 7 }),
      says("tool.call.requested", A, { call_id: "k", tool: "x" }, { target: "tool:x" }),
      seen(
        "interruptions",
        says(
          "interruption.requested",
          A,
          {},
          {
            task_id: "c",
            interruption_policy: "save_and_stop",
          },
        ),
      ),
      task("cancelled", "t", ofSession),
      says("session.closed", A, { session_id: "s" }, ofSession),
      task("progress", "t"),
    ],
    {
      task: [{ task_id: "t" }, { task_id: "c" }],
      tree: [{ task_id: "t" }],
      why: [{ task_id: "t" }, { task_id: "c" }],
      session: [{ session_id: "s" }],
      delegation: [{ task_id: "c" }],
      owner: [{ task_id: "c" }],
    },
  ],
  [
    createTracker() as ServiceDefinition<unknown>,
    [
      base,
      conclusion,
      fact(B, 3, { valid_until: new Date(NOW + 60_000).toISOString() }),
      says(
        "belief.revised",
        A,
        { previous: base.envelope.id, corrected: "4" },
        {
          belief_status: "revised",
          belief_scope: "fact",
        },
      ),
      says("freshness.window.changed", A, {
        resource: "memory:f",
        new_valid_until: new Date(NOW + 5_000).toISOString(),
      }),
      says("memory.fact.invalidated", "agent:c", { fact_id: "f" }, { belief_status: "retracted" }),
      says("memory.fact.invalidated", A, { fact_id: "f" }, { belief_status: "retracted" }),
      seen(
        "provenance",
        says(
          "provenance.chain.truncated",
          A,
          { earliest_available: "x", reason: "r" },
          {
            causation_id: conclusion.envelope.id,
          },
        ),
      ),
    ],
    {
      list: [{}],
      subject: [{ key: "memory:f" }],
      get: [{ key: "memory:f", source: A }],
      dependents: [{ event_id: base.envelope.id }],
      why: [{ event_id: conclusion.envelope.id }],
      stale: [{}],
    },
  ],
  [
    createManager() as ServiceDefinition<unknown>,
    [
      seen("tasks", task("submitted", "t")),
      seen("tasks", task("accepted", "t")),
      seen("tasks", task("started", "t")),
      says(
        "interruption.requested",
        A,
        { grace_period_ms: 1_000 },
        {
          task_id: "t",
          interruption_policy: "save_and_stop",
        },
      ),
      says("interruption.acknowledged", A, {}, { task_id: "t" }),
      says(
        "interruption.saved",
        A,
        { location: "x:1" },
        {
          task_id: "t",
          checkpoint_id: "ck",
          checkpoint_at: new Date(NOW).toISOString(),
        },
      ),
      says("interruption.resumed", A, {}, { task_id: "t", checkpoint_id: "ck" }),
      says("interruption.resumed", A, {}, { task_id: "t", checkpoint_id: "other" }),
      seen("tasks", task("completed", "t")),
      says(
        "compensation.requested",
        A,
        { reason: "r", description: "d" },
        {
          task_id: "u",
          compensation_id: "t",
        },
      ),
    ],
    {
      interruption: [{ task_id: "t" }],
      interruptions: [{}],
      checkpoints: [{ task_id: "t" }],
      compensations: [{ task_id: "t" }],
      why: [{ task_id: "t" }],
    },
  ],
  [
    createAttester() as ServiceDefinition<unknown>,
    [
      seen("beliefs", base),
      attested,
      attested,
      says(
        "provenance.attestation.added",
        A,
        { attestor: A, method: "m" },
        {
          causation_id: base.envelope.id,
        },
      ),
      seen("beliefs", conclusion),
      says(
        "provenance.attestation.revoked",
        B,
        { reason: "r" },
        {
          causation_id: attested.envelope.id,
        },
      ),
      says(
        "provenance.attestation.revoked",
        B,
        { reason: "again" },
        {
          causation_id: attested.envelope.id,
        },
      ),
      says(
        "provenance.attestation.added",
        B,
        { attestor: B, method: "m" },
        { causation_id: "evt_late" },
      ),
    ],
    {
      attestations: [{ event_id: base.envelope.id }],
      chain: [{ event_id: conclusion.envelope.id }],
      graph: [{ event_id: conclusion.envelope.id }],
      may: [{ event_id: base.envelope.id, action: "irreversible" }],
    },
  ],
];

/** What `acme` lives to see while the others do the same, each step before it. */
async function life(
  { decider, reads }: ServiceDefinition<unknown>,
  steps: readonly Step[],
  questions: Record<string, JsonObject[]>,
  others: readonly string[],
): Promise<unknown> {
  const scenario = new Given(decider, { at: NOW });
  const told: unknown[] = [];
  const isOurs = ({ tenant }: DomainEntry): boolean => tenant === "acme";
  const let_ = (ms: number): void => {
    scenario.wait(ms);
    for (const entry of scenario.settle().filter(isOurs)) {
      told.push(entry.kind === "event" ? entry.envelope : entry.kind);
    }
  };
  for (const { envelope, seenIn } of steps) {
    for (const tenant of [...others, "acme"]) {
      if (seenIn === undefined) {
        const { decision } = scenario.judge(envelope, tenant);
        if (tenant === "acme") told.push(decision);
      } else scenario.observe(seenIn, envelope, { tenant });
      let_(0);
    }
  }
  let_(120_000);
  for (const [verb, asked] of Object.entries(questions)) {
    const read = reads[verb] ?? assert.fail(`there is no read ${verb}`);
    for (const params of asked) {
      const context = { tenant: "acme", source: A, now: scenario.now } as Partial<ReadContext>;
      const event = async (): Promise<undefined> => undefined;
      try {
        const answer = await read(scenario.state, params, {
          ...context,
          event,
          signature: event,
        } as ReadContext);
        told.push([verb, answer]);
      } catch (error) {
        if (!(error instanceof HarmovelaError)) throw error;
        assert.notEqual(error.code, "invalid_query", `${verb}: ${error.message}`);
        told.push([verb, error.code]);
      }
    }
  }
  return unnumbered(told);
}

/** Without what counts positions of the whole log, and ids that are made of them. */
function unnumbered(value: unknown): unknown {
  const numbered = /(?:^|_)seq$|^(?:sequence|cursor|intake)$/;
  const text = JSON.stringify(value, (key, field: unknown) => (numbered.test(key) ? "#" : field));
  return JSON.parse(
    text.replace(/(?:hv_|sub_)[0-9A-Z]{26}/g, "made").replace(/HV_LOG_[A-Z]+:\d+/g, "at"),
  );
}

for (const [definition, steps, questions] of SCENES) {
  test(`${definition.domain}: one tenant is as if there were no other`, async () => {
    const alone = await life(definition, steps, questions, []);
    const among = await life(definition, steps, questions, ["beta", "ac", "me"]);
    assert.deepEqual(among, alone);
    const answers = JSON.stringify(alone);
    assert.match(answers, /"accept"/);
    assert.match(answers, /"reject"/);
  });

  test(`${definition.domain}: who has done nothing finds nothing of what others did`, async () => {
    const scenario = new Given(definition.decider, { at: NOW });
    for (const { envelope, seenIn } of steps) {
      if (seenIn === undefined) scenario.judge(envelope, "beta");
      else scenario.observe(seenIn, envelope, { tenant: "beta" });
      scenario.settle();
    }
    const event = async (): Promise<undefined> => undefined;
    for (const [verb, asked] of Object.entries(questions)) {
      const read = definition.reads[verb] ?? assert.fail(verb);
      for (const params of asked) {
        const context = { tenant: "acme", source: A, now: NOW, event, signature: event };
        const ask = async (state: unknown) => read(state, params, context);
        const told = await ask(scenario.state).catch((error: HarmovelaError) => error.code);
        const empty = await ask(definition.decider.initial()).catch(
          (error: HarmovelaError) => error.code,
        );
        assert.deepEqual(told, empty, verb);
      }
    }
  });
}
