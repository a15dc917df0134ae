import type { BadLog } from "./bad-log.ts";
import { accepted, del, expire, handOff, inMs, offered } from "./delegation-log.ts";

const afterRejection = ["escalated", "accepted", "handoff.completed", "rejected"] as const;

/** One log per rule of offers, their answers and handoffs. */
export const badDelegations: BadLog[] = [
  ...(["accepted", "rejected", "escalated", "handoff.completed"] as const).map(
    (name): BadLog => ({
      rule: "delegation-unknown",
      why: `${name} of a task that nobody offered`,
      build: (log) => {
        log.submit("task_c", { source: "agent:planner" });
        del(log, name, "task_c");
        return log.last;
      },
    }),
  ),
  ...afterRejection.map(
    (name): BadLog => ({
      rule: "delegation-transition",
      why: `${name} after a rejection`,
      build: (log) => {
        accepted(log);
        del(log, "rejected", "task_c");
        del(log, name, "task_c", name === "escalated" ? { to: "agent:chief" } : {});
        return log.last;
      },
    }),
  ),
  ...afterRejection.slice(1).map(
    (name): BadLog => ({
      rule: "delegation-transition",
      why: `${name} after a handoff`,
      build: (log) => {
        accepted(log);
        handOff(log, "task_c");
        del(log, name, "task_c");
        return log.last;
      },
    }),
  ),
  {
    rule: "delegation-transition",
    why: "a handoff that nobody has accepted",
    build: (log) => {
      offered(log);
      handOff(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-transition",
    why: "accepted twice",
    build: (log) => {
      accepted(log);
      del(log, "accepted", "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-transition",
    why: "offered to a second agent while the first has it",
    build: (log) => {
      accepted(log);
      del(log, "requested", "task_c", { to: "agent:other" });
      return log.last;
    },
  },
  {
    rule: "delegation-transition",
    why: "a handoff by an escalation that its supervisor has not accepted",
    build: (log) => {
      accepted(log);
      del(log, "escalated", "task_c", { to: "agent:chief" });
      handOff(log, "task_c", undefined, { delegated_to: "agent:chief" });
      return log.last;
    },
  },
  {
    rule: "delegation-transition",
    why: "an offer expires that was accepted",
    build: (log) => {
      accepted(log, { payload: { deadline: inMs(500) } });
      log.wait(500);
      expire(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-owner",
    why: "somebody offers the task of another",
    build: (log) => {
      log.running("task_c");
      del(log, "requested", "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-owner",
    why: "the old owner offers what it has handed off",
    build: (log) => {
      accepted(log);
      handOff(log, "task_c");
      del(log, "requested", "task_c", { to: "agent:other" });
      return log.last;
    },
  },
  ...(
    [
      ["accepted", "agent:other"],
      ["accepted", "agent:planner"],
      ["rejected", "agent:planner"],
      ["escalated", "agent:other"],
    ] as const
  ).map(
    ([name, by]): BadLog => ({
      rule: "delegation-party",
      why: `${name} by ${by}`,
      build: (log) => {
        offered(log);
        const to = name === "escalated" ? { delegated_to: "agent:chief" } : {};
        del(log, name, "task_c", { by, ...to });
        return log.last;
      },
    }),
  ),
  {
    rule: "delegation-party",
    why: "a handoff by the delegate",
    build: (log) => {
      accepted(log);
      del(log, "handoff.completed", "task_c", { by: "agent:worker" });
      return log.last;
    },
  },
  {
    rule: "delegation-party",
    why: "the replaced delegate answers after an escalation",
    build: (log) => {
      accepted(log);
      del(log, "escalated", "task_c", { to: "agent:chief" });
      del(log, "accepted", "task_c", { by: "agent:worker", to: "agent:chief" });
      return log.last;
    },
  },
  {
    rule: "delegation-party",
    why: "an open offer is rejected by somebody",
    build: (log) => {
      offered(log, { delegated_to: undefined });
      del(log, "rejected", "task_c", { delegated_to: undefined });
      return log.last;
    },
  },
  {
    rule: "delegation-tuple",
    why: "an offer in another's name",
    build: (log) => {
      del(log, "requested", "task_c", { by: "agent:mallory" });
      return log.last;
    },
  },
  {
    rule: "delegation-tuple",
    why: "accepted from another delegator",
    build: (log) => {
      offered(log);
      del(log, "accepted", "task_c", { from: "agent:mallory" });
      return log.last;
    },
  },
  {
    rule: "delegation-tuple",
    why: "handed off to another than has accepted",
    build: (log) => {
      accepted(log);
      handOff(log, "task_c", undefined, { delegated_to: "agent:other" });
      return log.last;
    },
  },
  {
    rule: "delegation-tuple",
    why: "escalated to the delegate itself",
    build: (log) => {
      accepted(log);
      del(log, "escalated", "task_c");
      return log.last;
    },
  },
  ...(["agent:planner", "agent:ghost"] as const).map(
    (by): BadLog => ({
      rule: "delegation-party",
      why: `escalated by ${by} while an escalation waits and the task is the worker's`,
      build: (log) => {
        accepted(log);
        handOff(log, "task_c");
        del(log, "escalated", "task_c", { to: "agent:ghost" });
        del(log, "escalated", "task_c", { by, from: by, to: "agent:chief" });
        return log.last;
      },
    }),
  ),
  {
    rule: "delegation-tuple",
    why: "escalated in the name of nobody who has a part in it",
    build: (log) => {
      accepted(log);
      del(log, "escalated", "task_c", {
        by: "agent:worker",
        from: "agent:other",
        to: "agent:chief",
      });
      return log.last;
    },
  },
  {
    rule: "delegation-entitlement",
    why: "a stranger delegates under a task, with proved senders",
    build: (log) => {
      log.epoch({ authenticated: true });
      log.running("task_p");
      del(log, "requested", "task_c", { parent_task_id: "task_p" });
      return log.last;
    },
  },
  ...(["accepted", "started"] as const).map(
    (name): BadLog => ({
      rule: "delegation-taken",
      why: `task.${name} in place of an answer`,
      build: (log) => {
        offered(log);
        log.task(name, "task_c");
        return log.last;
      },
    }),
  ),
  ...(["accepted", "requested", "submitted"] as const).map(
    (name): BadLog => ({
      rule: "delegation-closed",
      why: `${name} while a cascade ends the parent`,
      build: (log) => {
        offered(log);
        if (name === "requested") {
          del(log, "accepted", "task_c");
          handOff(log, "task_c");
        }
        log.beginCancel("task_p", "agent:planner");
        if (name === "submitted") log.submit("task_c", { source: "agent:planner" });
        else if (name === "accepted") del(log, name, "task_c");
        else del(log, name, "task_c", { from: "agent:worker", to: "agent:other" });
        return log.last;
      },
    }),
  ),
  {
    rule: "delegation-closed",
    why: "accepted while the parent is asked to stop",
    build: (log) => {
      offered(log);
      log.task("cancel.requested", "task_p", "agent:planner");
      del(log, "accepted", "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-closed",
    why: "an offer expires while a cascade ends the parent",
    build: (log) => {
      offered(log, { payload: { deadline: inMs(500) } });
      log.wait(500).beginCancel("task_p", "agent:planner");
      expire(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "delegation-key",
    why: "a child is made twice",
    build: (log) => {
      offered(log, { payload: { key: "k" } });
      del(log, "requested", "task_d", { parent_task_id: "task_p", payload: { key: "k" } });
      return log.last;
    },
  },
  {
    rule: "delegation-retry",
    why: "asked again a moment too early",
    build: (log) => {
      offered(log);
      del(log, "rejected", "task_c", { payload: { retry_after: inMs(100) } });
      log.wait(99);
      del(log, "requested", "task_c", { parent_task_id: "task_p" });
      return log.last;
    },
  },
  {
    rule: "expiry-early",
    why: "a moment before the deadline",
    build: (log) => {
      offered(log, { payload: { deadline: inMs(500) } });
      log.wait(499);
      expire(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "expiry-early",
    why: "an offer without deadline",
    build: (log) => {
      offered(log);
      log.wait(1_000_000);
      expire(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "expiry-reason",
    why: "another reason",
    build: (log) => {
      offered(log, { payload: { deadline: inMs(500) } });
      log.wait(500);
      expire(log, "task_c", "nobody came");
      return log.last;
    },
  },
];
