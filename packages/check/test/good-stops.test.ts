/** Interruptions and compensations as they should go: nothing is found, in either log. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog } from "../src/index.ts";
import { session } from "./family-log.ts";
import { lose, sessions } from "./instance-log.ts";
import { streamOf } from "./log-builder.ts";
import { BOSS, TwoLogs, WORKER } from "./stop-log.ts";

const GRACE = { payload: { grace_period_ms: 1_000 } };
const IN_S1 = { session_id: "s1" };

interface Good {
  what: string;
  /** Something is still owed at its end. */
  isOpen?: boolean;
  /** What it is about must be read from its beginning. */
  isWhole?: boolean;
  build(logs: TwoLogs): void;
}

/** t, taken in the worker's session s1. */
function taken(logs: TwoLogs): void {
  sessions(logs.tasks);
  logs.tasks.submit("t");
  logs.tasks.task("started", "t", WORKER, IN_S1);
}

/** p with c below it and g below that, all at work and interrupted as a tree. */
function stoppedTree(logs: TwoLogs) {
  logs.tasks.running("p");
  logs.tasks.running("c", { parent: "p", source: WORKER });
  logs.tasks.running("g", { parent: "c", source: WORKER });
  const tree = { interruption_policy: "save_and_stop", payload: { scope: "tree" } };
  const plan = logs.stops.begin(
    logs.stops.draft("interruption.requested", BOSS, { task_id: "p", ...tree }),
  );
  for (const id of ["g", "c"]) logs.owe(plan.id, "requested", id, { causation_id: plan.id });
  logs.stops.finish(plan);
  for (const id of ["p", "g", "c"]) logs.acknowledge(id);
  for (const id of ["p", "g", "c"]) logs.save(id);
}

const good: Good[] = [
  {
    what: "stopped, resumed and finished, twice",
    build(logs) {
      logs.saved("t");
      logs.resume("t");
      logs.tasks.task("progress", "t");
      logs.interrupt("t");
      logs.acknowledge("t");
      logs.tasks.task("progress", "t");
      logs.save("t", "ck_2");
      logs.resume("t", "ck_t");
      logs.tasks.task("completed", "t");
    },
  },
  {
    what: "a stronger policy takes the place of a weaker one, and its grace begins anew",
    build(logs) {
      logs.interrupted("t", "drain_then_stop", GRACE);
      logs.wait(900);
      logs.interrupt("t", "save_and_stop", GRACE);
      logs.wait(900);
      logs.acknowledge("t");
      logs.interrupt("t", "force_stop");
      logs.save("t");
      logs.resume("t");
    },
  },
  {
    what: "work goes on until it is saved, and what had not seen that counts",
    build(logs) {
      logs.interrupted("t");
      logs.acknowledge("t");
      logs.tasks.task("output", "t");
      const seen = logs.stops.last;
      logs.save("t");
      logs.tasks.seen = () => `interruptions:${seen}`;
      logs.tasks.task("progress", "t");
    },
  },
  {
    what: "a grace that passes fails the task, and that closes the interruption",
    build(logs) {
      const requested = logs.interrupted("t", "save_and_stop", GRACE);
      logs.acknowledge("t");
      logs.wait(1_000);
      const expired = logs.expire(requested);
      logs.closeWith(logs.fail("t", expired, "interruption_timeout"));
    },
  },
  {
    what: "a grace of nothing",
    build(logs) {
      const now = { payload: { grace_period_ms: 0 } };
      const expired = logs.expire(logs.interrupted("t", "save_and_stop", now));
      logs.closeWith(logs.fail("t", expired, "interruption_timeout"));
    },
  },
  {
    what: "a grace that passes leaves the task stopped, when that is wanted",
    build(logs) {
      logs.settings({ onGraceExpired: "force_stop" });
      const requested = logs.interrupted("t", "save_and_stop", GRACE);
      logs.wait(1_000);
      logs.expire(requested);
      logs.save("t");
      logs.resume("t");
      logs.tasks.task("completed", "t");
    },
  },
  {
    what: "a resume without its checkpoint fails the task",
    build(logs) {
      logs.saved("t");
      const refused = logs.refuseResume("t");
      logs.closeWith(logs.fail("t", refused, "checkpoint_missing"));
    },
  },
  {
    what: "cancelled after it was acknowledged",
    build(logs) {
      logs.interrupted("t");
      logs.acknowledge("t");
      logs.ask("cancelled", "t", logs.cancel("t"));
    },
  },
  {
    what: "a stopped task may end",
    build(logs) {
      for (const name of ["failed", "timed_out"]) {
        logs.saved(name);
        const error = { code: "task_error", message: "no", retryable: false };
        logs.closeWith(logs.tasks.task(name, name, WORKER, { payload: { error } }));
      }
      logs.saved("cancelled");
      logs.closeWith(logs.tasks.task("cancelled", "cancelled", BOSS));
    },
  },
  {
    isWhole: true,
    what: "a cancel of the parent does not wait for a stopped child",
    build(logs) {
      logs.tasks.submit("p");
      logs.tasks.running("c", { parent: "p" });
      logs.interrupt("c");
      logs.acknowledge("c");
      logs.save("c");
      const asked = logs.tasks.send("task.cancel.requested", BOSS, { task_id: "p" });
      const ended = logs.tasks.gentleStep(asked, "c", false);
      logs.closeWith(ended);
      logs.tasks.gentleStep(asked, "p", false);
    },
  },
  {
    what: "a closed session interrupts what it had, and another one goes on with it",
    build(logs) {
      taken(logs);
      const closed = session(logs.tasks, "closed", "s1", { source: WORKER });
      const cause = { causation_id: closed.id, interruption_policy: "save_and_stop" };
      logs.owe("session:t", "requested", "t", cause);
      logs.acknowledge("t", { session_id: "s2" });
      logs.save("t", "ck_t", { session_id: "s2" });
      logs.say("resumed", "t", WORKER, { checkpoint_id: "ck_t", session_id: "s2" });
      logs.tasks.task("completed", "t", WORKER, { session_id: "s2" });
    },
  },
  {
    what: "the tasks of a lost session are interrupted when that is wanted",
    build(logs) {
      const wanted = { orphanedTasks: "interrupt" };
      logs.settings(wanted);
      logs.tasks.epoch(wanted);
      taken(logs);
      const cause = { causation_id: lose(logs.tasks).id, interruption_policy: "save_and_stop" };
      logs.owe("session:t", "requested", "t", cause);
    },
  },
  {
    what: "a process resumes what another one of its agent had",
    build(logs) {
      taken(logs);
      logs.interrupt("t");
      logs.acknowledge("t", IN_S1);
      logs.save("t", "ck_t", IN_S1);
      logs.resume("t");
      logs.tasks.task("progress", "t", WORKER, { session_id: "s2" });
      logs.interrupt("t");
      logs.acknowledge("t", { session_id: "s2" });
    },
  },
  {
    what: "work that had not seen the resumption takes nothing up",
    build(logs) {
      taken(logs);
      logs.interrupt("t");
      logs.acknowledge("t", IN_S1);
      const seen = logs.stops.last;
      logs.save("t", "ck_t", IN_S1);
      const before = logs.tasks.last;
      logs.stops.seen = () => `tasks:${before}`;
      logs.resume("t");
      logs.stops.seen = () => `tasks:${logs.tasks.last}`;
      logs.tasks.seen = () => `interruptions:${seen}`;
      logs.tasks.task("progress", "t", WORKER, IN_S1);
      logs.interrupt("t");
      logs.acknowledge("t", { session_id: "s2" });
    },
  },
  {
    isWhole: true,
    what: "a tree is interrupted from its leaves and resumed from its root",
    build(logs) {
      stoppedTree(logs);
      const resumed = logs.resume("p", "ck_p", { payload: { scope: "tree" } });
      for (const id of ["c", "g"]) {
        logs.owe(resumed.id, "resumed", id, {
          causation_id: resumed.id,
          checkpoint_id: `ck_${id}`,
        });
      }
      logs.tasks.task("progress", "g");
    },
  },
  {
    isWhole: true,
    what: "of a tree only the root is resumed",
    build(logs) {
      stoppedTree(logs);
      logs.resume("p");
    },
  },
  {
    isWhole: true,
    what: "what a tree finds interrupted stays as it is",
    build(logs) {
      logs.tasks.running("p");
      logs.tasks.running("c", { parent: "p", source: WORKER });
      logs.tasks.running("d", { parent: "p", source: WORKER });
      logs.interrupt("c", "force_stop");
      const tree = { task_id: "p", payload: { scope: "tree" } };
      const plan = logs.stops.begin(logs.stops.draft("interruption.requested", BOSS, tree));
      logs.tasks.task("completed", "d");
      logs.stops.finish(plan);
    },
  },
  {
    what: "a task is undone, and undone again when that came to nothing",
    build(logs) {
      logs.tasks.running("t");
      logs.tasks.task("completed", "t");
      logs.compensating("k", "t");
      logs.tasks.task("started", "k");
      const error = { code: "task_error", message: "no", retryable: false };
      logs.tasks.task("failed", "k", WORKER, { payload: { error } });
      logs.compensating("kk", "t");
      logs.tasks.submit("kk", { source: BOSS });
      logs.tasks.task("started", "kk");
      const done = logs.compensated("kk", "t");
      logs.ask("completed", "kk", done);
    },
  },
  {
    what: "a stopped task is undone for two reasons",
    build(logs) {
      logs.saved("t");
      logs.compensating("k", "t");
      const asked = logs.compensate("kk", "t", { payload: { reason: "another" } });
      logs.ask("submitted", "kk", asked, { compensation_id: "t" });
      logs.tasks.task("started", "kk");
      logs.tasks.task("completed", "kk");
      logs.compensated("kk", "t", BOSS);
    },
  },
  {
    what: "tasks that nobody submitted, where that is wanted",
    build(logs) {
      logs.settings({ externalTasks: true });
      logs.say("requested", "far", "orchestrator:main");
      logs.say("acknowledged", "far", "agent:who");
      logs.save("far");
      const asked = logs.compensate("k", "far", { source: "orchestrator:main" });
      logs.ask("submitted", "k", asked, { compensation_id: "far" });
    },
  },
  {
    what: "runtimes interrupt",
    build(logs) {
      for (const source of ["runtime:main", "orchestrator:main", "harness:x", "service:watch"]) {
        logs.tasks.running(source);
        logs.say("requested", source, source);
      }
    },
    isOpen: true,
  },
  {
    what: "each of two tenants has its own",
    build(logs) {
      for (const tenant of ["acme", "beta"]) {
        logs.tasks.tenant = tenant;
        logs.stops.tenant = tenant;
        logs.saved("t");
        logs.resume("t");
      }
    },
  },
];

describe("good logs of interruptions and tasks", () => {
  for (const { what, isOpen = false, isWhole = false, build } of good) {
    it(what, async () => {
      const logs = new TwoLogs();
      build(logs);
      const { tasks, stops } = await logs.check({ settled: !isOpen });
      assert.deepEqual([...tasks.findings, ...stops.findings], []);
    });

    it(`${what}, each log for itself`, () => {
      const logs = new TwoLogs();
      build(logs);
      for (const log of [logs.tasks, logs.stops]) {
        const { domain } = log;
        const report = checkLog(log.records(), { domain, stream: streamOf(domain) });
        assert.deepEqual(report.findings, [], domain);
      }
    });

    if (isWhole) continue;
    it(`${what}, read from the middle`, () => {
      const logs = new TwoLogs();
      build(logs);
      for (const log of [logs.tasks, logs.stops]) {
        const { domain } = log;
        const records = log.records();
        for (let from = 1; from < records.length; from += 1) {
          const options = { domain, stream: streamOf(domain), lenient: true };
          const report = checkLog(records.slice(from), options);
          assert.deepEqual(report.findings, [], `${domain} from ${from}`);
        }
      }
    });
  }

  it("counts interruptions", async () => {
    const logs = new TwoLogs();
    logs.saved("t");
    logs.saved("u");
    logs.resume("u");
    const { stops } = await logs.check();
    assert.equal(stops.interruptions, 2);
    assert.equal(stops.openInterruptions, 1);
  });
});
