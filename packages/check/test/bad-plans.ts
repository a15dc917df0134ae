import type { BadLog } from "./bad-log.ts";
import type { Draft, LogBuilder } from "./log-builder.ts";

/** task_p over task_c over task_g, and task_d beside task_c, all at work. */
function family(log: LogBuilder): void {
  log.running("task_p");
  log.running("task_c", { parent: "task_p" });
  log.running("task_g", { parent: "task_c" });
  log.running("task_d", { parent: "task_p" });
}

function familyCancelled(log: LogBuilder): Draft {
  family(log);
  return log.beginCancel("task_p");
}

function gentleFamily(log: LogBuilder, grace?: number): Draft {
  family(log);
  const payload = { task_id: "task_p", ...(grace === undefined ? {} : { grace_period_ms: grace }) };
  return log.task("cancel.requested", "task_p", "agent:boss", { payload });
}

/** One log per rule of plans, cascades and cancel requests. */
export const badPlans: BadLog[] = [
  {
    rule: "begun-twice",
    why: "the same plan begins again",
    build: (log) => {
      log.begin(familyCancelled(log));
      return log.last;
    },
  },
  {
    rule: "begun-pointless",
    why: "nothing is live below",
    build: (log) => {
      log.running("task_p");
      log.beginCancel("task_p");
      return log.last;
    },
  },
  {
    rule: "begun-pointless",
    why: "the task has ended",
    build: (log) => {
      log.running("task_p");
      log.task("completed", "task_p");
      log.beginCancel("task_p");
      return log.last;
    },
  },
  {
    rule: "begun-nested",
    why: "an inner task begins to fail in a closed subtree",
    build: (log) => {
      familyCancelled(log);
      log.begin(log.draft("task.failed", "agent:worker", { task_id: "task_c" }));
      return log.last;
    },
  },
  {
    rule: "plan-outcome",
    why: "the event that ends the plan says something else",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const plan = log.beginCancel("task_p");
      log.step(plan, "task_c", plan.id);
      log.finish(plan, { payload: { task_id: "task_p", reason: "another" } });
      return log.last;
    },
  },
  {
    rule: "plan-final-cause",
    why: "the event that ends the plan comes from the intake",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const plan = log.beginCancel("task_p");
      log.step(plan, "task_c", plan.id);
      log.finish(plan);
      const item = log.items.at(-1);
      if (item) item.cause = "in:99";
      return log.last;
    },
  },
  {
    rule: "plan-open",
    why: "the root never ends",
    options: { settled: true },
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const plan = log.beginCancel("task_p");
      const begun = log.last;
      log.step(plan, "task_c", plan.id);
      return begun;
    },
  },
  {
    rule: "plan-spawn",
    why: "a task joins a closed subtree",
    build: (log) => {
      familyCancelled(log);
      log.submit("task_new", { parent: "task_g" });
      return log.last;
    },
  },
  {
    rule: "plan-work",
    why: "a leaf goes on working",
    build: (log) => {
      familyCancelled(log);
      log.task("progress", "task_g");
      return log.last;
    },
  },
  {
    rule: "plan-work",
    why: "the root goes on working",
    build: (log) => {
      familyCancelled(log);
      log.task("progress", "task_p");
      return log.last;
    },
  },
  {
    rule: "plan-work",
    why: "somebody asks a leaf to cancel",
    build: (log) => {
      familyCancelled(log);
      log.task("cancel.requested", "task_g");
      return log.last;
    },
  },
  {
    rule: "plan-timer",
    why: "a deadline fires in a closed subtree",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p", payload: { timeout_ms: 10 } });
      log.beginCancel("task_p");
      log.wait(20).timeOut("task_c");
      return log.last;
    },
  },
  {
    rule: "plan-root-ended",
    why: "the root completes in mid cascade",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const plan = log.beginCancel("task_p");
      log.step(plan, "task_c", plan.id);
      log.task("completed", "task_p");
      return log.last;
    },
  },
  {
    rule: "plan-root-ended",
    why: "an outer plan cancels the root of an inner one",
    also: ["plan-step"],
    build: (log) => {
      family(log);
      const inner = log.beginCancel("task_c");
      const outer = log.beginCancel("task_p");
      log.step(inner, "task_g", inner.id);
      log.step(outer, "task_c", outer.id);
      return log.last;
    },
  },
  {
    rule: "plan-step",
    why: "the outer plan reaches into the inner one",
    build: (log) => {
      family(log);
      log.beginCancel("task_c");
      const outer = log.beginCancel("task_p");
      log.step(outer, "task_g", outer.id);
      return log.last;
    },
  },
  {
    rule: "plan-step",
    why: "no plan has begun",
    build: (log) => {
      family(log);
      const plan = log.draft("task.cancelled", "agent:boss", { task_id: "task_p" });
      log.step(plan, "task_g", plan.id);
      return log.last;
    },
  },
  {
    rule: "plan-step",
    why: "the plan is of another tree",
    build: (log) => {
      const plan = familyCancelled(log);
      log.running("task_z");
      log.step(plan, "task_z", plan.id);
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "a child of the root names another event",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_d", "evt_other");
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "a child names nothing",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_d", plan.id, { causation_id: undefined });
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "the parent ends by another event than its child has named",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_g", log.derivedId());
      log.step(plan, "task_c", plan.id);
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "the parent ends by itself after its child has named its planned end",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_g", log.derivedId());
      log.task("completed", "task_c");
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "a forced cancel names another end of its parent than the one that follows",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      const plan = log.task("cancel.requested", "task_p", "agent:boss");
      log.wait(5_000).gentleStep(plan, "task_c", true);
      log.gentleStep(plan, "task_p", true);
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "two children name two ends of one parent",
    build: (log) => {
      family(log);
      log.running("task_h", { parent: "task_c" });
      const plan = log.beginCancel("task_p");
      log.step(plan, "task_g", log.derivedId());
      log.step(plan, "task_h", log.derivedId());
      return log.last;
    },
  },
  {
    rule: "cascade-causation",
    why: "the root of a gentle cancel names another event than the request",
    build: (log) => {
      log.running("task_a");
      const plan = log.task("cancel.requested", "task_a", "agent:boss");
      log.wait(5_000).gentleStep(plan, "task_a", true, { causation_id: "evt_other" });
      return log.last;
    },
  },
  {
    rule: "cascade-correlation",
    why: "a child correlates to its parent's end",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_d", plan.id, { correlation_id: "evt_other" });
      return log.last;
    },
  },
  {
    rule: "cascade-reason",
    why: "no reason",
    build: (log) => {
      const plan = familyCancelled(log);
      log.step(plan, "task_d", plan.id, { payload: { task_id: "task_d" } });
      return log.last;
    },
  },
  {
    rule: "gentle-spawn",
    why: "a task joins while the grace runs",
    build: (log) => {
      gentleFamily(log);
      log.submit("task_new", { parent: "task_c" });
      return log.last;
    },
  },
  {
    rule: "gentle-request",
    why: "nobody asked",
    build: (log) => {
      family(log);
      log.ask(log.draft("task.cancel.requested", "agent:boss"), "task_g");
      return log.last;
    },
  },
  {
    rule: "gentle-request",
    why: "the request is of another tree",
    build: (log) => {
      const plan = gentleFamily(log);
      log.running("task_z");
      log.ask(plan, "task_z");
      return log.last;
    },
  },
  {
    rule: "gentle-request",
    why: "nobody runs it",
    build: (log) => {
      log.running("task_p");
      log.submit("task_c", { parent: "task_p" });
      log.ask(log.task("cancel.requested", "task_p", "agent:boss"), "task_c");
      return log.last;
    },
  },
  {
    rule: "gentle-order",
    why: "the grandchild is asked before the child",
    build: (log) => {
      log.ask(gentleFamily(log), "task_g");
      return log.last;
    },
  },
  {
    rule: "gentle-order",
    why: "a task is asked twice",
    build: (log) => {
      const plan = gentleFamily(log);
      log.ask(plan, "task_c");
      log.ask(plan, "task_c");
      return log.last;
    },
  },
  {
    rule: "gentle-early",
    why: "forced a moment before the default grace ends",
    build: (log) => {
      const plan = gentleFamily(log);
      log.wait(4_999).gentleStep(plan, "task_g", true);
      return log.last;
    },
  },
  {
    rule: "gentle-early",
    why: "forced before the asked grace ends",
    build: (log) => {
      const plan = gentleFamily(log, 60_000);
      log.wait(5_000).gentleStep(plan, "task_g", true);
      return log.last;
    },
  },
  {
    rule: "gentle-unforced",
    why: "a running task is cancelled as if nobody ran it",
    build: (log) => {
      log.gentleStep(gentleFamily(log), "task_g", false);
      return log.last;
    },
  },
  {
    rule: "gentle-open",
    why: "the grace has passed and the root lives",
    options: { settled: true },
    build: (log) => {
      const plan = gentleFamily(log, 100);
      const asked = log.last;
      log.wait(100).gentleStep(plan, "task_g", true);
      return asked;
    },
  },
];
