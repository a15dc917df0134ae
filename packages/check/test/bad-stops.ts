/** Interruptions that go wrong: order, parties, checkpoints, graces and ends. */

import { type BadLogs, bad, GRACE, open, taken } from "./bad-two-logs.ts";
import { ready, session } from "./family-log.ts";
import { lose } from "./instance-log.ts";
import { BOSS, type TwoLogs, WORKER } from "./stop-log.ts";

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
  bad("interruption-owner", "acknowledged beside the process that went on with it", (logs) => {
    taken(logs);
    const inS1 = { session_id: "s1" };
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
    logs.save("t", "ck_t", inS1);
    logs.resume("t");
    logs.tasks.task("progress", "t", WORKER, { session_id: "s2" });
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
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

export const badStops: BadLogs[] = [...order, ...parties, ...checkpoints, ...graces, ...ends];
