import type { BadLog } from "./bad-log.ts";
import { del, offered } from "./delegation-log.ts";
import { answer, ask, budget, call, cost } from "./family-log.ts";
import type { LogBuilder } from "./log-builder.ts";

const RETENTION = 1_000;

type Row = [
  rule: BadLog["rule"],
  why: string,
  before: (log: LogBuilder) => void,
  after: (log: LogBuilder) => void,
];

/** What may come back after the retention comes back at its last moment. */
const TOO_EARLY: readonly Row[] = [
  [
    "task-reused",
    "an ended id is submitted again within the retention",
    (log) => {
      log.submit("task_a");
      log.task("failed", "task_a", "agent:boss");
    },
    (log) => log.submit("task_a"),
  ],
  [
    "task-terminal",
    "an ended task goes on within the retention",
    (log) => {
      log.running("task_a");
      log.task("completed", "task_a");
    },
    (log) => log.task("progress", "task_a"),
  ],
  [
    "delegation-key",
    "the key of a rejected offer is used again within the retention",
    (log) => {
      offered(log, { payload: { key: "k" } });
      del(log, "rejected", "task_c");
    },
    (log) => del(log, "requested", "task_d", { parent_task_id: "task_p", payload: { key: "k" } }),
  ],
  [
    "delegation-key",
    "the key of a task that ended is used again within the retention",
    (log) => {
      offered(log, { payload: { key: "k" } });
      log.task("failed", "task_c", "agent:planner");
    },
    (log) => del(log, "requested", "task_d", { parent_task_id: "task_p", payload: { key: "k" } }),
  ],
  [
    "query-version",
    "an older snapshot within the retention",
    (log) => {
      ask(log, "query.requested");
      answer(log, "query.response", { payload: { snapshot_version: 2 } });
    },
    (log) => {
      ask(log, "query.requested");
      answer(log, "query.response", { payload: { snapshot_version: 1 } });
    },
  ],
  [
    "call-order",
    "a call is requested again within the retention of its last word",
    (log) => {
      call(log, "requested", "agent:a");
      log.wait(RETENTION);
      call(log, "started");
    },
    (log) => call(log, "requested", "agent:a"),
  ],
  [
    "budget-exceeded",
    "a budget is overspent within the retention of its last use",
    (log) => {
      budget(log);
      log.wait(RETENTION);
      cost(log, 9);
    },
    (log) => cost(log, 2),
  ],
  [
    "exchange-live",
    "a correlation is used again within the retention",
    (log) => ask(log, "command.requested"),
    (log) => ask(log, "command.requested"),
  ],
];

/** What is forgotten has no say any more. */
const TOO_LATE: readonly Row[] = [
  [
    "task-unknown",
    "a task goes on that is forgotten",
    (log) => {
      log.running("task_a");
      log.task("completed", "task_a");
    },
    (log) => log.task("failed", "task_a"),
  ],
  [
    "parent-unknown",
    "a child of a task that is forgotten",
    (log) => {
      log.submit("task_a");
      log.task("failed", "task_a", "agent:boss");
    },
    (log) => log.submit("task_b", { parent: "task_a" }),
  ],
  [
    "delegation-unknown",
    "an answer to an offer that is forgotten",
    (log) => {
      offered(log);
      del(log, "rejected", "task_c");
    },
    (log) => del(log, "accepted", "task_c"),
  ],
  [
    "exchange-unknown",
    "an answer to a request that is forgotten",
    (log) => ask(log, "query.requested"),
    (log) => answer(log, "query.response"),
  ],
  [
    "call-order",
    "a call goes on that is forgotten",
    (log) => call(log, "requested", "agent:a"),
    (log) => call(log, "started"),
  ],
];

const rows = (list: readonly Row[], waitMs: number): BadLog[] =>
  list.map(([rule, why, before, after]) => ({
    rule,
    why,
    build: (log) => {
      log.epoch({ retentionMs: RETENTION });
      before(log);
      log.wait(waitMs);
      after(log);
      return log.last;
    },
  }));

export const badForgetting: BadLog[] = [
  ...rows(TOO_EARLY, RETENTION),
  ...rows(TOO_LATE, RETENTION + 1),
];
