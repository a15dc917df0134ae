import type { RuleId } from "../src/index.ts";
import { ready, session } from "./family-log.ts";
import { fail, lose, sessions } from "./instance-log.ts";
import { BOSS, MANAGER, type TwoLogs, WORKER } from "./stop-log.ts";

/** Two logs that break a rule together, and where it shows. */
export interface BadLogs {
  rule: RuleId;
  why: string;
  in: "tasks" | "stops";
  /** Rules that this fault cannot help to break as well. */
  also?: RuleId[];
  isSettled?: boolean;
  /** Writes the logs; the sequence of the entry that must be named. */
  build(logs: TwoLogs): number;
}

/** The last positions of both logs when they are written. */
function last(logs: TwoLogs, build: (logs: TwoLogs) => void): { tasks: number; stops: number } {
  build(logs);
  return { tasks: logs.tasks.last, stops: logs.stops.last };
}

/** Shows in the log of interruptions, at the entry that is written last. */
function bad(rule: RuleId, why: string, build: (logs: TwoLogs) => void): BadLogs {
  return { rule, why, in: "stops", build: (logs) => last(logs, build).stops };
}

/** Shows in the log of tasks, at the entry that is written last. */
function badTask(rule: RuleId, why: string, build: (logs: TwoLogs) => void): BadLogs {
  return { rule, why, in: "tasks", build: (logs) => last(logs, build).tasks };
}

/** Logs at rest in which something is missing; the entry that nothing has followed. */
function open(rule: RuleId, why: string, build: (logs: TwoLogs) => number): BadLogs {
  return { rule, why, in: "stops", isSettled: true, build };
}

const GRACE = { payload: { grace_period_ms: 1_000 } };
const TREE = { payload: { scope: "tree" } };

const order: BadLogs[] = [
  bad("interruption-order", "acknowledged without a request", (logs) => {
    logs.tasks.running("t");
    logs.acknowledge("t");
  }),
  bad("interruption-order", "acknowledged twice", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.acknowledge("t");
  }),
  bad("interruption-order", "saved before it is acknowledged", (logs) => {
    logs.interrupted("t");
    logs.save("t");
  }),
  bad("interruption-order", "saved twice", (logs) => {
    logs.saved("t");
    logs.save("t", "ck_more");
  }),
  bad("interruption-order", "saved twice under a forced stop", (logs) => {
    logs.interrupted("t", "force_stop");
    logs.save("t");
    logs.save("t", "ck_more");
  }),
  bad("interruption-order", "resumed before anything is saved", (logs) => {
    logs.saved("t");
    logs.resume("t");
    logs.interrupt("t");
    logs.acknowledge("t");
    logs.resume("t");
  }),
  bad("interruption-order", "resumed twice", (logs) => {
    logs.saved("t");
    logs.resume("t");
    logs.resume("t");
  }),
  bad("interruption-order", "cancelled before it is acknowledged", (logs) => {
    logs.interrupted("t");
    logs.cancel("t");
  }),
  bad("interruption-order", "cancelled twice", (logs) => {
    logs.saved("t");
    logs.cancel("t");
    logs.cancel("t");
  }),
  bad("interruption-order", "resumed after it was cancelled", (logs) => {
    logs.saved("t");
    logs.cancel("t");
    logs.resume("t");
  }),
  bad("interruption-open", "the same policy again", (logs) => {
    logs.interrupted("t");
    logs.interrupt("t");
  }),
  bad("interruption-open", "a weaker policy", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.interrupt("t", "drain_then_stop");
  }),
  bad("interruption-open", "a stronger one after it was saved", (logs) => {
    logs.saved("t");
    logs.interrupt("t", "force_stop");
  }),
  bad("interruption-superseded", "acknowledged is the one that gave way", (logs) => {
    const first = logs.interrupted("t", "drain_then_stop");
    logs.interrupt("t");
    logs.acknowledge("t", { causation_id: first.id });
  }),
  bad("interruption-superseded", "saved is what an older one had asked for", (logs) => {
    const older = logs.saved("t");
    logs.resume("t");
    logs.interrupt("t");
    logs.acknowledge("t");
    logs.save("t", "ck_2", { causation_id: older.id });
  }),
];

const parties: BadLogs[] = [
  bad("interruption-task", "that nobody submitted", (logs) => logs.interrupt("t")),
  bad("interruption-task", "that has ended", (logs) => {
    logs.tasks.running("t");
    logs.tasks.task("completed", "t");
    logs.interrupt("t");
  }),
  bad("interruption-task", "resumed after its end", (logs) => {
    logs.saved("t");
    logs.tasks.task("cancelled", "t", BOSS);
    logs.resume("t");
  }),
  bad("interruption-task", "of another tenant", (logs) => {
    logs.tasks.running("t");
    logs.stops.tenant = "beta";
    logs.interrupt("t");
  }),
  bad("interruption-owner", "acknowledged by another agent", (logs) => {
    logs.interrupted("t");
    logs.say("acknowledged", "t", BOSS);
  }),
  bad("interruption-owner", "saved by a former owner", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    handOver(logs);
    logs.save("t");
  }),
  bad("interruption-owner", "acknowledged in another session", (logs) => {
    taken(logs);
    logs.interrupt("t");
    logs.acknowledge("t", { session_id: "s2" });
  }),
  bad("interruption-owner", "saved in no session", (logs) => {
    taken(logs);
    logs.interrupt("t");
    logs.acknowledge("t", { session_id: "s1" });
    logs.save("t");
  }),
  ...["requested", "resumed", "cancelled"].map((name) =>
    bad("interruption-entitlement", `${name} by a stranger`, (logs) => {
      if (name === "requested") logs.tasks.running("t");
      else logs.saved("t");
      const payload = { reason: "because" };
      logs.say(name, "t", "agent:stranger", { checkpoint_id: "ck_t", payload });
    }),
  ),
  bad("interruption-entitlement", "by who only has a part in a child", (logs) => {
    logs.tasks.running("t");
    logs.tasks.submit("c", { parent: "t", source: WORKER, target: "agent:helper" });
    logs.say("requested", "t", "agent:helper");
  }),
  bad("interruption-entitlement", "a runtime whose name is not proved", (logs) => {
    logs.settings({ authenticated: true });
    logs.tasks.running("t");
    logs.say("requested", "t", "runtime:main");
  }),
  bad("session-closed", "an event of a session that has ended", (logs) => {
    taken(logs);
    session(logs.tasks, "closed", "s2", { source: WORKER });
    logs.say("requested", "t", WORKER, { session_id: "s2" });
  }),
  bad("profile-fields", "a checkpoint without a name under runtime-semantics", (logs) => {
    session(logs.tasks, "opened", "s1", {
      source: WORKER,
      payload: {
        session_id: "s1",
        version: "0.2",
        capabilities: { profiles: ["harmovela.runtime-semantics.v1"] },
      },
    });
    ready(logs.tasks, "s1", { profiles: ["harmovela.core.v1", "harmovela.runtime-semantics.v1"] });
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.say("saved", "t", WORKER, { session_id: "s1", checkpoint_id: "ck" });
  }),
  bad("task-id", "an interruption of nothing", (logs) => {
    logs.stops.send("interruption.requested", BOSS);
  }),
  bad("owed-type", "the service saves by itself", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.owe("x", "saved", "t", { checkpoint_id: "ck", checkpoint_at: "2026-11-30T10:00:00Z" });
  }),
  bad("seen-beyond", "a task that the other log does not hold", (logs) => {
    logs.tasks.running("t");
    logs.stops.seen = () => `tasks:${logs.tasks.last + 1}`;
    logs.interrupt("t");
  }),
];

const checkpoints: BadLogs[] = [
  bad("checkpoint-unknown", "that nobody saved", (logs) => {
    logs.saved("t");
    logs.resume("t", "ck_none");
  }),
  bad("checkpoint-unknown", "of another task", (logs) => {
    logs.saved("t");
    logs.saved("u");
    logs.resume("t", "ck_u");
  }),
  bad("checkpoint-unknown", "none, after a forced stop", (logs) => {
    logs.interrupted("t", "force_stop");
    logs.resume("t", undefined, { checkpoint_id: undefined });
  }),
  bad("checkpoint-unknown", "with another digest", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.save("t", "ck_t", { payload: { digest: `sha-256:${"a".repeat(64)}` } });
    logs.resume("t", "ck_t", { payload: { digest: `sha-256:${"b".repeat(64)}` } });
  }),
  bad("checkpoint-unknown", "named by who cancels", (logs) => {
    logs.saved("t");
    logs.cancel("t", { payload: { reason: "enough", checkpoint_id: "ck_none" } });
  }),
  bad("checkpoint-form", "a digest of another kind", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.save("t", "ck_t", { payload: { digest: "md5:00" } });
  }),
  bad("checkpoint-changed", "the same id again with other bytes", (logs) => {
    logs.saved("t");
    logs.resume("t");
    logs.interrupt("t");
    logs.acknowledge("t");
    logs.save("t", "ck_t", { payload: { bytes_saved: 7 } });
  }),
];

const graces: BadLogs[] = [
  bad("grace-early", "a millisecond", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(999);
    logs.expire(requested);
  }),
  bad("grace-early", "before five seconds when none was named", (logs) => {
    const requested = logs.interrupted("t");
    logs.wait(4_999);
    logs.expire(requested);
  }),
  bad("grace-early", "before a minute when it may drain", (logs) => {
    const requested = logs.interrupted("t", "drain_then_stop");
    logs.wait(59_999);
    logs.expire(requested);
  }),
  bad("grace-form", "by another policy", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested, { interruption_policy: "save_and_stop" });
  }),
  bad("grace-form", "with another grace", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested, { payload: { grace_period_ms: 5 } });
  }),
  bad("grace-cause", "twice", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested);
    logs.expire(requested);
  }),
  bad("grace-cause", "after it was saved", (logs) => {
    const requested = logs.saved("t");
    logs.wait(5_000);
    logs.expire(requested);
  }),
  bad("grace-cause", "of the one that gave way", (logs) => {
    const requested = logs.interrupted("t", "drain_then_stop", GRACE);
    logs.interrupt("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested);
  }),
  bad("grace-cause", "of a forced stop, which has none", (logs) => {
    const requested = logs.interrupted("t", "force_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested);
  }),
  open("grace-open", "nobody noticed", (logs) => {
    logs.interrupted("t", "save_and_stop", GRACE);
    const at = logs.stops.last;
    logs.acknowledge("t");
    logs.wait(1_000);
    logs.stops.control("position", { intake: logs.stops.intake });
    return at;
  }),
  open("grace-open", "a grace of nothing", (logs) => {
    logs.interrupted("t", "save_and_stop", { payload: { grace_period_ms: 0 } });
    return logs.stops.last;
  }),
];

const ends: BadLogs[] = [
  bad("closing-cause", "of a task that goes on", (logs) => {
    logs.interrupted("t");
    logs.closeWith(logs.tasks.task("progress", "t"));
  }),
  bad("closing-cause", "by another end", (logs) => {
    logs.tasks.running("u");
    const other = logs.tasks.task("completed", "u");
    logs.interrupted("t");
    logs.tasks.task("completed", "t");
    logs.closeWith({ ...other, task_id: "t" });
  }),
  bad("closing-cause", "of what nobody interrupted", (logs) => {
    logs.tasks.running("t");
    logs.closeWith(logs.tasks.task("completed", "t"));
  }),
  open("closing-open", "nobody noticed", (logs) => {
    logs.interrupted("t");
    const at = logs.stops.last;
    logs.tasks.task("completed", "t");
    return at;
  }),
  bad("interrupt-cause", "its session lives", (logs) => {
    taken(logs);
    session(logs.tasks, "closed", "s2", { source: WORKER });
    interruptBySession(logs, "t", { id: "evt_none" });
  }),
  bad("interrupt-cause", "with another policy", (logs) => {
    taken(logs);
    const closed = session(logs.tasks, "closed", "s1", { source: WORKER });
    interruptBySession(logs, "t", closed, { interruption_policy: "force_stop" });
  }),
  bad("interrupt-cause", "beside another one", (logs) => {
    taken(logs);
    logs.interrupt("t");
    const closed = session(logs.tasks, "closed", "s1", { source: WORKER });
    interruptBySession(logs, "t", closed);
  }),
  bad("interrupt-cause", "with a session that was lost, whose tasks fail", (logs) => {
    taken(logs);
    interruptBySession(logs, "t", lose(logs.tasks));
  }),
  open("interrupt-open", "nobody noticed", (logs) => {
    taken(logs);
    session(logs.tasks, "closed", "s1", { source: WORKER });
    return 0;
  }),
];

const trees: BadLogs[] = [
  bad("tree-order", "the root before what is below it", (logs) => {
    tree(logs);
    finishTree(logs, beginTree(logs));
  }),
  bad("tree-order", "a parent before its child", (logs) => {
    tree(logs);
    stepTree(logs, beginTree(logs), "c");
  }),
  bad("tree-member", "a task beside the tree", (logs) => {
    tree(logs);
    logs.tasks.running("u");
    stepTree(logs, beginTree(logs), "u");
  }),
  bad("tree-member", "a task that came later", (logs) => {
    tree(logs);
    const plan = beginTree(logs);
    logs.tasks.running("later", { parent: "p" });
    stepTree(logs, plan, "later");
  }),
  bad("tree-member", "with another policy", (logs) => {
    tree(logs);
    stepTree(logs, beginTree(logs), "g", { interruption_policy: "force_stop" });
  }),
  bad("interruption-open", "what is interrupted already", (logs) => {
    tree(logs);
    logs.interrupt("g");
    stepTree(logs, beginTree(logs), "g");
  }),
  bad("begun-form", "a plan that is of no tree", (logs) => {
    tree(logs);
    logs.stops.begin(logs.stops.draft("interruption.requested", BOSS, { task_id: "p" }));
  }),
  bad("begun-form", "a plan that ends with another event", (logs) => {
    tree(logs);
    const fields = { task_id: "p", checkpoint_id: "ck" };
    logs.stops.begin(logs.stops.draft("interruption.resumed", BOSS, fields));
  }),
  bad("tree-order", "resumed from the leaves", (logs) => {
    const resumed = savedTree(logs);
    resumeStep(logs, resumed, "g");
  }),
  bad("tree-resume", "from an older checkpoint", (logs) => {
    const resumed = savedTree(logs);
    resumeStep(logs, resumed, "c", { checkpoint_id: "ck_g" });
  }),
  bad("tree-resume", "what was interrupted for itself", (logs) => {
    const resumed = savedTree(logs);
    logs.tasks.running("own", { parent: "p" });
    logs.interrupt("own");
    logs.acknowledge("own");
    logs.save("own");
    resumeStep(logs, resumed, "own");
  }),
  bad("tree-resume", "what has not saved anything", (logs) => {
    const resumed = savedTree(logs, ["g", "p"]);
    resumeStep(logs, resumed, "c", { checkpoint_id: undefined });
  }),
  bad("tree-resume", "with a resume of the root alone", (logs) => {
    const resumed = savedTree(logs, ["g", "c", "p"], {});
    resumeStep(logs, resumed, "c");
  }),
  open("tree-open", "the rest of it stays stopped", (logs) => {
    savedTree(logs);
    return logs.stops.last;
  }),
];

const work: BadLogs[] = [
  ...["progress", "output", "blocked", "completed"].map((name) =>
    badTask("stopped-work", `${name} after it was saved`, (logs) => {
      logs.saved("t");
      logs.tasks.task(name, "t");
    }),
  ),
  badTask("stopped-work", "taken after a forced stop", (logs) => {
    logs.tasks.submit("t");
    logs.interrupt("t", "force_stop");
    logs.tasks.task("accepted", "t");
  }),
  badTask("stopped-work", "after the grace has passed", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested);
    logs.tasks.task("progress", "t");
  }),
  badTask("stopped-work", "after its interruption was cancelled", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.cancel("t");
    logs.tasks.task("completed", "t");
  }),
  badTask("stopped-work", "stopped again after it was resumed", (logs) => {
    logs.saved("t");
    logs.resume("t");
    logs.tasks.task("progress", "t");
    logs.interrupt("t", "force_stop");
    logs.tasks.task("progress", "t");
  }),
  badTask("stopped-spawn", "submitted", (logs) => {
    logs.saved("t");
    logs.tasks.submit("c", { parent: "t", source: WORKER });
  }),
  badTask("stopped-spawn", "delegated", (logs) => {
    logs.saved("t");
    const parties = { delegated_by: WORKER, delegated_to: "agent:x", parent_task_id: "t" };
    logs.tasks.send("delegation.requested", WORKER, { task_id: "c", ...parties });
  }),
  badTask("orphan-cause", "a stopped task fails with its session", (logs) => {
    taken(logs);
    const inS1 = { session_id: "s1" };
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
    logs.save("t", "ck_t", inS1);
    fail(logs.tasks, lose(logs.tasks), { id: "t" });
  }),
  badTask("task-instance", "in the session from which it was resumed away", (logs) => {
    taken(logs);
    const inS1 = { session_id: "s1" };
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
    logs.save("t", "ck_t", inS1);
    logs.say("resumed", "t", WORKER, { checkpoint_id: "ck_t", session_id: "s2" });
    logs.tasks.task("progress", "t", WORKER, inS1);
  }),
  badTask("task-instance", "by another process than the one that went on first", (logs) => {
    taken(logs);
    const inS1 = { session_id: "s1" };
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
    logs.save("t", "ck_t", inS1);
    logs.resume("t", "ck_t", {});
    logs.tasks.task("progress", "t", WORKER, { session_id: "s2" });
    logs.tasks.task("progress", "t", WORKER, inS1);
  }),
];

const requests: BadLogs[] = [
  badTask("request-reason", "a failure that names nothing", (logs) => {
    logs.interrupted("t");
    logs.fail("t", { id: undefined } as never, "interruption_timeout");
  }),
  badTask("request-reason", "a failure because of a request that has not expired", (logs) => {
    logs.fail("t", logs.interrupted("t"), "interruption_timeout");
  }),
  badTask("request-reason", "a failure where the task is to stay stopped", (logs) => {
    logs.settings({ onGraceExpired: "force_stop" });
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.fail("t", logs.expire(requested), "interruption_timeout");
  }),
  badTask("request-reason", "a failure because of another task", (logs) => {
    logs.tasks.running("u");
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.fail("u", logs.expire(requested), "interruption_timeout");
  }),
  badTask("request-reason", "a failure before its reason was seen", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    const seen = logs.stops.last;
    const expired = logs.expire(requested);
    logs.tasks.seen = () => `interruptions:${seen}`;
    logs.fail("t", expired, "interruption_timeout");
  }),
  badTask("request-reason", "a cancel because of a checkpoint", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.ask("cancelled", "t", logs.save("t"));
  }),
  badTask("request-reason", "a completion that nobody asked for", (logs) => {
    logs.tasks.running("t");
    logs.ask("completed", "t", logs.interrupt("t"));
  }),
  badTask("request-reason", "a task that undoes another one than was asked for", (logs) => {
    logs.tasks.running("u");
    logs.saved("t");
    const asked = logs.compensate("k", "t");
    logs.ask("submitted", "k", asked, { compensation_id: "u" });
  }),
  badTask("request-error", "with the error of another reason", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.fail("t", logs.expire(requested), "checkpoint_missing");
  }),
  badTask("compensation-apart", "below another task", (logs) => {
    logs.tasks.running("u");
    logs.saved("t");
    const asked = logs.compensate("k", "t");
    logs.ask("submitted", "k", asked, { compensation_id: "t", parent_task_id: "u" });
  }),
  open("request-open", "what expired goes on", (logs) => {
    const requested = logs.interrupted("t", "save_and_stop", GRACE);
    logs.wait(1_000);
    logs.expire(requested);
    return logs.stops.last;
  }),
  open("request-open", "what was cancelled goes on", (logs) => {
    logs.saved("t");
    logs.cancel("t");
    return logs.stops.last;
  }),
  open("request-open", "what was resumed without a checkpoint goes on", (logs) => {
    logs.saved("t");
    refuseResume(logs, "t");
    return logs.stops.last;
  }),
  open("request-open", "a compensation has no task", (logs) => {
    logs.saved("t");
    logs.compensate("k", "t");
    return logs.stops.last;
  }),
];

const compensations: BadLogs[] = [
  bad("compensation-original", "nobody submitted it", (logs) => logs.compensate("k", "t")),
  bad("compensation-original", "it is at work", (logs) => {
    logs.tasks.running("t");
    logs.compensate("k", "t");
  }),
  bad("compensation-original", "it is interrupted and not stopped", (logs) => {
    logs.interrupted("t");
    logs.acknowledge("t");
    logs.compensate("k", "t");
  }),
  bad("compensation-original", "it is a compensation", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.tasks.task("started", "k");
    logs.tasks.task("completed", "k");
    logs.compensate("kk", "k");
  }),
  bad("compensation-original", "it is the task itself", (logs) => {
    logs.stops.seen = () => "tasks:0";
    logs.settings({ externalTasks: true });
    logs.compensate("t", "t");
  }),
  bad("compensation-task", "a task that there is", (logs) => {
    logs.saved("t");
    logs.tasks.running("k");
    logs.compensate("k", "t");
  }),
  bad("compensation-task", "the task of another compensation", (logs) => {
    logs.saved("t");
    logs.compensate("k", "t");
    logs.compensate("k", "t", { payload: { reason: "another" } });
  }),
  bad("compensation-twice", "while the first is under way", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.compensate("kk", "t");
  }),
  bad("compensation-twice", "after the first has done it", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.tasks.task("started", "k");
    logs.tasks.task("completed", "k");
    logs.compensate("kk", "t");
  }),
  bad("interruption-entitlement", "compensated by a stranger", (logs) => {
    logs.saved("t");
    logs.compensate("k", "t", { source: "agent:stranger" });
  }),
  bad("compensation-order", "completed without a request", (logs) => {
    logs.tasks.running("k");
    logs.compensated("k", "t");
  }),
  bad("compensation-order", "completed twice", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.tasks.task("started", "k");
    logs.compensated("k", "t");
    logs.compensated("k", "t");
  }),
  bad("compensation-order", "of another original", (logs) => {
    logs.saved("t");
    logs.saved("u");
    logs.compensating("k", "t");
    logs.tasks.task("started", "k");
    logs.compensated("k", "u");
  }),
  bad("compensation-order", "its task was cancelled", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.tasks.task("cancelled", "k", BOSS);
    logs.compensated("k", "t", BOSS);
  }),
  bad("compensation-order", "its task has not begun", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.compensated("k", "t", BOSS);
  }),
  bad("compensation-party", "by somebody else", (logs) => {
    logs.saved("t");
    logs.compensating("k", "t");
    logs.tasks.task("started", "k");
    logs.compensated("k", "t", "agent:stranger");
  }),
];

/** t, which the worker has taken in its session s1; s2 is its other one. */
function taken(logs: TwoLogs): void {
  sessions(logs.tasks);
  logs.tasks.submit("t");
  logs.tasks.task("started", "t", WORKER, { session_id: "s1" });
}

/** The worker hands t, which it runs, to agent:next. */
function handOver({ tasks }: TwoLogs): void {
  const parties = { task_id: "t", delegated_by: WORKER, delegated_to: "agent:next" };
  tasks.send("delegation.requested", WORKER, parties);
  tasks.send("delegation.accepted", "agent:next", parties);
  tasks.send("delegation.handoff.completed", WORKER, parties);
}

function interruptBySession(
  logs: TwoLogs,
  id: string,
  closed: { id: string },
  fields: Record<string, unknown> = {},
): void {
  const own = { causation_id: closed.id, interruption_policy: "save_and_stop", ...fields };
  logs.owe(`session:${id}`, "requested", id, own);
}

/** p with c below it and g below that, all at work. */
function tree({ tasks }: TwoLogs): void {
  tasks.running("p");
  tasks.running("c", { parent: "p", source: WORKER });
  tasks.running("g", { parent: "c", source: WORKER });
}

function beginTree(logs: TwoLogs) {
  const fields = { task_id: "p", interruption_policy: "save_and_stop", ...TREE };
  return logs.stops.begin(logs.stops.draft("interruption.requested", BOSS, fields));
}

type Plan = ReturnType<typeof beginTree>;

function stepTree(logs: TwoLogs, plan: Plan, id: string, fields = {}): void {
  const own = { causation_id: plan.id, interruption_policy: "save_and_stop", ...fields };
  logs.owe(plan.id, "requested", id, own);
}

function finishTree(logs: TwoLogs, plan: Plan): void {
  logs.stops.finish(plan);
}

/** The tree was interrupted, these have saved, and the root is resumed. */
function savedTree(logs: TwoLogs, saved = ["g", "c", "p"], fields: object = TREE) {
  tree(logs);
  const plan = beginTree(logs);
  for (const id of ["g", "c"]) stepTree(logs, plan, id);
  finishTree(logs, plan);
  for (const id of ["g", "c", "p"]) logs.acknowledge(id);
  for (const id of saved) logs.save(id);
  return logs.resume("p", "ck_p", { ...fields });
}

function resumeStep(logs: TwoLogs, resumed: Plan, id: string, fields = {}): void {
  const own = { causation_id: resumed.id, checkpoint_id: `ck_${id}`, ...fields };
  logs.owe(resumed.id, "resumed", id, own);
}

/** A resume that names a checkpoint which nobody knows is refused. */
export function refuseResume(logs: TwoLogs, id: string) {
  const error = { code: "checkpoint_missing", message: "no such checkpoint", retryable: false };
  return logs.stops.refuse("evt_refused", {
    source: MANAGER,
    task_id: id,
    target: BOSS,
    payload: { acknowledged_event_id: "evt_refused", error },
  });
}

export const badStops: BadLogs[] = [
  ...order,
  ...parties,
  ...checkpoints,
  ...graces,
  ...ends,
  ...trees,
  ...work,
  ...requests,
  ...compensations,
];
