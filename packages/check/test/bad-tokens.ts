import type { BadLog } from "./bad-log.ts";
import { accepted, del, handOff, issue, offered } from "./delegation-log.ts";
import type { LogBuilder } from "./log-builder.ts";

function handedOff(log: LogBuilder): void {
  accepted(log);
  handOff(log, "task_c");
}

function ended(log: LogBuilder): void {
  accepted(log);
  log.task("cancelled", "task_c");
}

/** One log per rule of handoff tokens. */
export const badTokens: BadLog[] = [
  ...(
    [
      ["nobody has accepted", offered, {}],
      ["it has been handed off", handedOff, {}],
      ["nobody has offered it", () => undefined, {}],
      ["it has ended", ended, {}],
      ["it is not the delegator's", accepted, { iss: "agent:worker" }],
      ["it is not for the delegate", accepted, { sub: "agent:other" }],
      ["of another parent", accepted, { parent_task_id: "task_q" }],
    ] as const satisfies readonly [string, (log: LogBuilder) => unknown, Record<string, unknown>][]
  ).map(
    ([why, prepare, claims]): BadLog => ({
      rule: "token-entitlement",
      why,
      build: (log) => {
        prepare(log);
        issue(log, "j1", claims);
        return log.last;
      },
    }),
  ),
  {
    rule: "token-jti",
    why: "issued twice",
    build: (log) => {
      accepted(log);
      issue(log, "j1");
      issue(log, "j1");
      return log.last;
    },
  },
  ...[24 * 3_600 + 1, 0].map(
    (lifeS): BadLog => ({
      rule: "token-lifetime",
      why: `a life of ${lifeS} s`,
      build: (log) => {
        accepted(log);
        issue(log, "j1", { exp: log.at / 1_000 + lifeS });
        return log.last;
      },
    }),
  ),
  {
    rule: "token-lifetime",
    why: "it begins tomorrow",
    build: (log) => {
      accepted(log);
      const iat = log.at / 1_000 + 86_400;
      issue(log, "j1", { iat, exp: iat + 600 });
      return log.last;
    },
  },
  {
    rule: "control-body",
    why: "an issued token without jti",
    build: (log) => {
      accepted(log);
      issue(log, "j1", { jti: undefined });
      return log.last;
    },
  },
  {
    rule: "token-missing",
    why: "a handoff without proof under coordination.v1",
    also: ["profile-fields"],
    build: (log) => {
      log.epoch({ defaultProfiles: ["harmovela.coordination.v1"] });
      accepted(log);
      handOff(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "token-reused",
    why: "the same jti twice, for the second task after the first",
    build: (log) => {
      accepted(log);
      handOff(log, "task_c", "j1");
      del(log, "requested", "task_d");
      del(log, "accepted", "task_d");
      handOff(log, "task_d", "j1");
      return log.last;
    },
  },
  {
    rule: "token-void",
    why: "a token of the parties before an escalation",
    also: ["token-binding"],
    build: (log) => {
      accepted(log);
      issue(log, "j1");
      del(log, "escalated", "task_c", { to: "agent:chief" });
      del(log, "accepted", "task_c", { to: "agent:chief" });
      handOff(log, "task_c", "j1", { delegated_to: "agent:chief" });
      return log.last;
    },
  },
  {
    rule: "token-void",
    why: "a token of an offer that was rejected",
    build: (log) => {
      accepted(log);
      issue(log, "j1");
      del(log, "rejected", "task_c");
      del(log, "requested", "task_c", { parent_task_id: "task_p" });
      del(log, "accepted", "task_c");
      handOff(log, "task_c", "j1");
      return log.last;
    },
  },
  {
    rule: "token-binding",
    why: "a token of another task",
    build: (log) => {
      accepted(log);
      issue(log, "j1");
      del(log, "requested", "task_d", { parent_task_id: "task_p" });
      del(log, "accepted", "task_d");
      handOff(log, "task_d", "j1");
      return log.last;
    },
  },
  {
    rule: "token-expired",
    why: "at its exp",
    build: (log) => {
      accepted(log);
      log.wait(600_000);
      handOff(log, "task_c", "j1");
      return log.last;
    },
  },
];
