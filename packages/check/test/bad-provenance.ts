import type { RuleId } from "../src/index.ts";
import type { BadLog } from "./bad-log.ts";
import type { LogBuilder } from "./log-builder.ts";
import { attest, beginAttest, observed, refuse, revoke, seen, truncate } from "./provenance-log.ts";

const OPTIONS = { domain: "provenance" } as const;
const SECURE = { defaultProfiles: ["harmovela.security.v1"] };
const WAIT_MS = 30_000;

/** A log of the domain, and what is wrong with it. */
function bad(rule: RuleId, why: string, build: (log: LogBuilder) => void): BadLog {
  const last = (log: LogBuilder): number => {
    build(log);
    return log.last;
  };
  return { rule, why, options: OPTIONS, build: last };
}

const link = (...ids: string[]) => ({
  evidence_chain: ids.map((id) => ({ source: "agent:a", id })),
  causation_id: ids.at(-1),
});

export const badProvenance: BadLog[] = [
  bad("chain-repeats", "a link twice", (log) => {
    attest(log, "f", "agent:v", link("f", "g", "f"));
  }),
  bad("chain-repeats", "itself", (log) => {
    attest(log, "f", "agent:v", { id: "own", ...link("own", "f") });
  }),
  bad("attestation-attestor", "for another", (log) => {
    log.epoch(SECURE);
    attest(log, "f", "agent:v", { payload: { attestor: "agent:w", method: "m" } });
  }),
  bad("attestation-attestor", "for another, who revokes", (log) => {
    log.epoch(SECURE);
    const { id } = attest(log, "f");
    revoke(log, id, "agent:v", { payload: { attestor: "agent:w", reason: "r" } });
  }),
  bad("revocation-unknown", "of an event that is none", (log) => {
    attest(log, "f");
    revoke(log, "f");
  }),
  bad("revocation-unknown", "that names nothing", (log) => {
    attest(log, "f");
    revoke(log, undefined);
  }),
  bad("revocation-unknown", "of what was refused", (log) => {
    const sent = beginAttest(log, "f");
    log.wait(WAIT_MS);
    refuse(log, sent);
    revoke(log, sent.id);
  }),
  bad("revocation-twice", "after it", (log) => {
    const { id } = attest(log, "f");
    revoke(log, id);
    revoke(log, id);
  }),
  bad("revocation-twice", "once while it waited", (log) => {
    const sent = beginAttest(log, "f");
    revoke(log, sent.id);
    seen(log, sent);
    revoke(log, sent.id);
  }),
  bad("revocation-party", "by a stranger", (log) => {
    const { id } = attest(log, "f");
    revoke(log, id, "agent:w");
  }),
  bad("revocation-party", "by an authority of before", (log) => {
    log.epoch({ authorities: ["agent:w"] });
    log.epoch({ authorities: [] });
    const { id } = attest(log, "f");
    revoke(log, id, "agent:w");
  }),
  bad("wait-early", "a millisecond", (log) => {
    const sent = beginAttest(log, "f");
    log.wait(WAIT_MS - 1);
    refuse(log, sent);
  }),
  bad("wait-early", "under a longer wait", (log) => {
    log.epoch({ evidenceWaitMs: 60_000 });
    const sent = beginAttest(log, "f");
    log.wait(WAIT_MS);
    refuse(log, sent);
  }),
  bad("wait-refusal", "of what does not wait", (log) => {
    const sent = attest(log, "f");
    refuse(log, sent);
  }),
  bad("wait-refusal", "after its end", (log) => {
    const sent = beginAttest(log, "f");
    seen(log, sent);
    log.wait(WAIT_MS);
    refuse(log, sent);
  }),
  bad("wait-refusal", "to another", (log) => {
    const sent = beginAttest(log, "f");
    log.wait(WAIT_MS);
    refuse(log, sent, { target: "agent:w" });
  }),
  bad("truncation-fields", "without an assertion", (log) => {
    truncate(log, undefined);
  }),
  bad("truncation-fields", "without what is missing", (log) => {
    truncate(log, "c", { payload: { earliest_available: "b", reason: "r" } });
  }),
  bad("truncation-twice", "of one assertion", (log) => {
    truncate(log, "c");
    truncate(log, "d");
    truncate(log, "c");
  }),
  bad("observed-back", "to what was told", (log) => {
    observed(log, { beliefs: 5, tasks: 2 });
    observed(log, { beliefs: 5 });
  }),
  bad("observed-back", "to the first entry there is", (log) => {
    observed(log, { beliefs: 1 });
  }),
  bad("control-body", "no place", (log) => {
    observed(log, { beliefs: "5" });
  }),
  bad("control-body", "nothing", (log) => {
    observed(log, undefined);
  }),
  bad("begun-form", "a revocation waits", (log) => {
    const { id } = attest(log, "f");
    const fields = { causation_id: id, payload: { reason: "r" } };
    log.begin(log.draft("provenance.attestation.revoked", "agent:v", fields));
  }),
  bad("owed-type", "an attestation of its own", (log) => {
    log.owe("x", "provenance.attestation.added", {
      causation_id: "f",
      payload: { attestor: "service", method: "m" },
    });
  }),
  bad("authorization-scheme", "that nobody can check", (log) => {
    attest(log, "f", "agent:v", { authorization: { scheme: "bearer", token: "t" } });
  }),
  bad("profile-fields", "an attestation of nothing", (log) => {
    log.epoch({ defaultProfiles: ["harmovela.runtime-semantics.v1"] });
    attest(log, "f", "agent:v", { causation_id: undefined });
  }),
  {
    rule: "plan-open",
    why: "an attestation waits for ever",
    options: { ...OPTIONS, settled: true },
    build: (log) => {
      beginAttest(log, "f");
      return log.last;
    },
  },
];
