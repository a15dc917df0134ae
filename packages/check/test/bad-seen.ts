/** Logs of `provenance` that say something else than the logs that they have seen. */
import type { RuleId } from "../src/index.ts";
import { ready, session } from "./family-log.ts";
import { T0 } from "./log-builder.ts";
import { beginAttest, refuse, revoke, seen } from "./provenance-log.ts";
import { resting, type SeenLogs } from "./seen-logs.ts";

export interface BadSeen {
  rule: RuleId;
  why: string;
  isSettled?: boolean;
  /** Writes the logs; the position in the log of `provenance`, or 0, that must be named. */
  build(logs: SeenLogs): number;
}

const WAIT_MS = 30_000;

function bad(rule: RuleId, why: string, build: (logs: SeenLogs) => void): BadSeen {
  const last = (logs: SeenLogs): number => {
    build(logs);
    return logs.own.last;
  };
  return { rule, why, build: last };
}

const sentAt = (ms: number) => ({ created_at: new Date(T0 + ms).toISOString() });

export const badSeen: BadSeen[] = [
  bad("attestation-unknown", "of what no log shows", (logs) => {
    logs.fact("f");
    logs.attest("g", undefined);
  }),
  bad("attestation-unknown", "of what comes later", (logs) => {
    logs.attest("f", undefined);
    logs.fact("f");
  }),
  bad("attestation-unknown", "taken though nobody has seen what it waited for", (logs) => {
    const sent = beginAttest(logs.own, "f");
    logs.own.push({ cause: `owed:${sent.id}`, envelope: sent });
  }),
  bad("attestation-unknown", "of an answer to what was refused", (logs) => {
    const { id } = logs.tasks.refuse("evt_x");
    logs.attest(id, undefined);
  }),
  bad("attestation-count", "one that is not", (logs) => {
    logs.fact("f");
    logs.attest("f", 2);
  }),
  bad("attestation-count", "by the asserting source", (logs) => {
    logs.fact("f");
    logs.attest("f", 1, "agent:a");
  }),
  bad("attestation-count", "the same source twice", (logs) => {
    logs.fact("f");
    logs.attest("f", 1);
    logs.attest("f", 2);
  }),
  bad("attestation-count", "with one that was revoked", (logs) => {
    logs.fact("f");
    const { id } = logs.attest("f", 1);
    revoke(logs.own, id);
    logs.attest("f", 2, "agent:w");
  }),
  bad("attestation-count", "with one that was refused", (logs) => {
    logs.fact("f");
    logs.own.refuse("evt_refused");
    logs.attest("f", 2);
  }),
  bad("attestation-count", "with one that waited and was refused", (logs) => {
    const sent = beginAttest(logs.own, "f", "agent:w");
    logs.own.wait(WAIT_MS);
    refuse(logs.own, sent);
    logs.fact("f");
    logs.attest("f", 2);
  }),
  bad("wait-pointless", "for what was seen", (logs) => {
    logs.fact("f");
    beginAttest(logs.own, "f");
  }),
  bad("wait-seen", "in its last millisecond", (logs) => {
    const sent = beginAttest(logs.own, "f");
    logs.own.wait(WAIT_MS);
    logs.fact("f");
    refuse(logs.own, sent);
  }),
  bad("chain-contradicts", "a link is of another source", (logs) => {
    logs.fact("f", { source: "agent:b" });
    logs.attest("f", 1, "agent:v", resting("f"));
  }),
  bad("chain-contradicts", "a link holds something else", (logs) => {
    logs.fact("f");
    const chain = [{ source: "agent:a", id: "f", digest: "A".repeat(43) }];
    logs.attest("f", 1, "agent:v", { evidence_chain: chain });
  }),
  bad("chain-contradicts", "the younger one first", (logs) => {
    logs.fact("f", sentAt(60_001));
    logs.fact("g", { ...sentAt(0), causation_id: "f" });
    logs.attest("g", 1, "agent:v", { ...resting("f", "g"), ...sentAt(0) });
  }),
  bad("chain-contradicts", "its last one is younger than it", (logs) => {
    logs.fact("f", sentAt(60_001));
    logs.attest("f", 1, "agent:v", { ...resting("f"), ...sentAt(0) });
  }),
  bad("chain-contradicts", "as the event that it waited for has shown", (logs) => {
    const sent = beginAttest(logs.own, "f", "agent:v", resting("f"));
    logs.fact("f", { source: "agent:b" });
    seen(logs.own, sent);
  }),
  bad("truncation-party", "of another's assertion", (logs) => {
    logs.fact("f");
    logs.fact("g", resting("f"));
    const payload = { earliest_available: "g", missing_from: "f", reason: "retention" };
    logs.own.send("provenance.chain.truncated", "agent:w", { causation_id: "g", payload });
  }),
  bad("truncation-party", "by a runtime whose name is not proved", (logs) => {
    logs.own.epoch({ authenticated: true });
    logs.fact("f");
    logs.fact("g", resting("f"));
    const payload = { earliest_available: "g", missing_from: "f", reason: "retention" };
    logs.own.send("provenance.chain.truncated", "runtime:main", { causation_id: "g", payload });
  }),
  bad("profile-fields", "under a profile of its session", (logs) => {
    const profiles = ["harmovela.core.v1", "harmovela.runtime-semantics.v1"];
    session(logs.tasks, "opened", "s", { payload: { capabilities: { profiles } } });
    ready(logs.tasks, "s", { profiles });
    logs.fact("f");
    logs.attest("f", undefined, "agent:a", { causation_id: undefined, session_id: "s" });
  }),
  bad("truncation-dead", "of what was withdrawn", (logs) => {
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.retract("g");
    logs.trim();
    logs.truncate("g", "f");
  }),
  bad("truncation-dead", "of what was said again", (logs) => {
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.fact("g2", { payload: { fact_id: "g", value: 2 } });
    logs.trim();
    logs.truncate("g", "f");
  }),
  bad("truncation-dead", "of what asserts nothing", (logs) => {
    logs.fact("f");
    logs.tasks.submit("t", { id: "s", ...resting("f") });
    logs.trim();
    logs.truncate("s", "f");
  }),
  bad("truncation-evidence", "of what does not rest on it", (logs) => {
    logs.fact("e");
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.trim();
    logs.truncate("g", "e");
  }),
  bad("truncation-lost", "of what is still there", (logs) => {
    logs.fact("e");
    logs.trim();
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.truncate("g", "f");
  }),
  bad("truncation-lost", "before anybody told that it is", (logs) => {
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.truncate("g", "f");
  }),
  bad("truncation-lost", "what is called available is not", (logs) => {
    logs.fact("e");
    logs.fact("f");
    logs.fact("g", resting("e", "f"));
    logs.trim();
    logs.truncate("g", "f", "e");
  }),
  {
    rule: "truncation-open",
    why: "nobody was told",
    isSettled: true,
    build: (logs) => {
      logs.fact("f");
      logs.fact("g", resting("f"));
      const { last } = logs.beliefs;
      logs.fact("h", resting("f"));
      logs.trim();
      logs.truncate("h", "f");
      return last;
    },
  },
];
