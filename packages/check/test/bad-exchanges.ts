import type { BadLog } from "./bad-log.ts";
import { answer, ask, budget, call, cost, settle } from "./family-log.ts";

/** One log per rule of commands, queries, tool calls and budgets. */
export const badExchanges: BadLog[] = [
  ...(["command.requested", "query.requested"] as const).map(
    (type): BadLog => ({
      rule: "exchange-open",
      why: `${type} to nobody known, and its window is over`,
      options: { settled: true },
      build: (log) => {
        ask(log, type, { target: "agent:never" });
        const asked = log.last;
        log.wait(5_001).submit("t");
        return asked;
      },
    }),
  ),
  ...(
    [
      ["command.requested", { target: undefined }],
      ["command.requested", { correlation_id: undefined }],
      ["query.requested", { payload: { query_scope: undefined } }],
    ] as const
  ).map(
    ([type, fields]): BadLog => ({
      rule: "exchange-fields",
      why: `${type} without ${Object.keys(fields)}`,
      build: (log) => {
        ask(log, type, fields);
        return log.last;
      },
    }),
  ),
  {
    rule: "exchange-live",
    why: "a correlation id in use",
    build: (log) => {
      ask(log, "command.requested");
      ask(log, "command.requested", { target: "agent:u" });
      return log.last;
    },
  },
  ...(["command.completed", "query.response"] as const).flatMap((type): BadLog[] => {
    const kind = type.slice(0, type.indexOf("."));
    return [
      {
        rule: "exchange-unknown",
        why: `${type} without request`,
        build: (log) => {
          answer(log, type);
          return log.last;
        },
      },
      {
        rule: "exchange-unknown",
        why: `${type} after the end`,
        build: (log) => {
          ask(log, `${kind}.requested`);
          answer(log, type);
          answer(log, type);
          return log.last;
        },
      },
      {
        rule: "exchange-target",
        why: `${type} by another than the target`,
        build: (log) => {
          ask(log, `${kind}.requested`);
          answer(log, type, { by: "agent:a" });
          return log.last;
        },
      },
    ];
  }),
  {
    rule: "exchange-unknown",
    why: "the service accepts a command that has ended",
    build: (log) => {
      ask(log, "command.requested");
      answer(log, "command.failed");
      settle(log, "command.accepted");
      return log.last;
    },
  },
  {
    rule: "exchange-target",
    why: "a harness completes a command of another",
    build: (log) => {
      ask(log, "command.requested");
      answer(log, "command.completed", { by: "harness:h" });
      return log.last;
    },
  },
  ...(["command.accepted", "command.rejected"] as const).map(
    (type): BadLog => ({
      rule: "exchange-order",
      why: `${type} after acceptance`,
      build: (log) => {
        ask(log, "command.requested");
        settle(log, "command.accepted");
        answer(log, type);
        return log.last;
      },
    }),
  ),
  {
    rule: "exchange-order",
    why: "the window ends of a command that was accepted",
    build: (log) => {
      ask(log, "command.requested");
      answer(log, "command.accepted");
      log.wait(5_000);
      settle(log, "command.rejected");
      return log.last;
    },
  },
  ...(
    [
      ["command", 4_999, {}],
      ["query", 4_999, {}],
      ["command", 99, { negotiation_window_ms: 100 }],
    ] as const
  ).map(
    ([kind, ms, payload]): BadLog => ({
      rule: "exchange-window",
      why: `${kind}.rejected after ${ms} ms`,
      build: (log) => {
        ask(log, `${kind}.requested`, { payload });
        log.wait(ms);
        settle(log, `${kind}.rejected`);
        return log.last;
      },
    }),
  ),
  ...(
    [
      [3, 2],
      ["snap_10", "snap_9"],
    ] as const
  ).map(
    ([first, second]): BadLog => ({
      rule: "query-version",
      why: `${second} after ${first}`,
      build: (log) => {
        for (const snapshot_version of [first, second]) {
          ask(log, "query.requested");
          answer(log, "query.response", { payload: { snapshot_version } });
        }
        return log.last;
      },
    }),
  ),
  ...(
    [
      [[], "started"],
      [["requested"], "progress"],
      [["requested", "rejected"], "started"],
      [["requested", "accepted"], "rejected"],
      [["requested", "started", "completed"], "failed"],
    ] as const
  ).map(
    ([before, then]): BadLog => ({
      rule: "call-order",
      why: `${then} after ${before.at(-1) ?? "nothing"}`,
      build: (log) => {
        for (const word of before) call(log, word, word === "requested" ? "agent:a" : "tool:t");
        call(log, then);
        return log.last;
      },
    }),
  ),
  {
    rule: "call-order",
    why: "requested while it is under way",
    build: (log) => {
      call(log, "requested", "agent:a");
      call(log, "requested", "agent:a");
      return log.last;
    },
  },
  ...(
    [
      ["started", "tool:other"],
      ["completed", "agent:a"],
      ["cancel.requested", "tool:t"],
    ] as const
  ).map(
    ([word, by]): BadLog => ({
      rule: "call-party",
      why: `${word} by ${by}`,
      build: (log) => {
        call(log, "requested", "agent:a");
        if (word === "completed") call(log, "started");
        call(log, word, by);
        return log.last;
      },
    }),
  ),
  {
    rule: "budget-exceeded",
    why: "a cost that passes the limit",
    build: (log) => {
      budget(log);
      cost(log, 7);
      cost(log, 4);
      return log.last;
    },
  },
  {
    rule: "budget-exceeded",
    why: "a cost of a budget that its owner calls exhausted",
    build: (log) => {
      budget(log);
      budget(log, "exhausted");
      cost(log, 1);
      return log.last;
    },
  },
  {
    rule: "budget-exceeded",
    why: "a cascade that costs too much when it begins",
    build: (log) => {
      budget(log);
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const fields = { task_id: "task_p", budget_id: "b1", budget_cost: 11 };
      log.begin(log.draft("task.cancelled", "agent:boss", fields));
      return log.last;
    },
  },
  {
    rule: "budget-owner",
    why: "adjusted by another agent",
    build: (log) => {
      budget(log);
      budget(log, "adjusted", "agent:b", 100);
      return log.last;
    },
  },
  {
    rule: "budget-owner",
    why: "established twice",
    build: (log) => {
      budget(log);
      budget(log);
      return log.last;
    },
  },
];
