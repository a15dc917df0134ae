/** What is wrong in the log of tasks because of the one of interruptions, and the other way round. */
import { type BadLogs, bad, badTask, GRACE, open, taken } from "./bad-two-logs.ts";
import { fail, lose } from "./instance-log.ts";
import { BOSS, WORKER } from "./stop-log.ts";

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
  badTask("task-instance", "beside the process that went on with it first", (logs) => {
    taken(logs);
    const inS1 = { session_id: "s1" };
    logs.interrupt("t");
    logs.acknowledge("t", inS1);
    logs.save("t", "ck_t", inS1);
    logs.resume("t");
    logs.tasks.task("progress", "t", WORKER, { session_id: "s2" });
    logs.tasks.task("progress", "t", WORKER, inS1);
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
    logs.refuseResume("t");
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

export const badStoppedTasks: BadLogs[] = [...work, ...requests, ...compensations];
