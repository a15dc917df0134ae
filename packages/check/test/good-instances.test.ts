/** Processes of one agent that keep to what they have taken: the checker finds nothing. */
import { describe, it } from "node:test";
import { clean } from "./clean.ts";
import { del, handOff, offered } from "./delegation-log.ts";
import { ready, session } from "./family-log.ts";
import { fail, IN_S1, lose, sessions, taken } from "./instance-log.ts";
import { LogBuilder } from "./log-builder.ts";

describe("a good log of several processes of one agent", () => {
  it("taken, worked on and completed in one session; cancelling is the agent's", () => {
    const log = new LogBuilder();
    taken(log);
    log.task("progress", "task_t", "agent:worker", IN_S1);
    log.task("cancel.requested", "task_t", "agent:worker", { session_id: "s2" });
    log.task("completed", "task_t", "agent:worker", IN_S1);
    clean(log);
  });

  it("a session that is not the taker's own binds nothing", () => {
    const log = new LogBuilder();
    session(log, "opened", "others");
    ready(log, "others");
    log.submit("task_t");
    log.task("started", "task_t", "agent:worker", { session_id: "others" });
    log.task("progress", "task_t");
    clean(log);
  });

  it("after the end of its session another one goes on", () => {
    const log = new LogBuilder();
    taken(log);
    session(log, "closed", "s1", { source: "agent:worker" });
    log.task("progress", "task_t", "agent:worker", { session_id: "s2" });
    log.task("completed", "task_t");
    clean(log);
  });

  it("given back in its session and taken in another", () => {
    const log = new LogBuilder();
    sessions(log);
    offered(log);
    log.submit("task_c", { source: "agent:planner", parent: "task_p" });
    del(log, "accepted", "task_c", IN_S1);
    del(log, "rejected", "task_c", IN_S1);
    del(log, "requested", "task_c", { parent_task_id: "task_p" });
    del(log, "accepted", "task_c", { session_id: "s2" });
    log.task("started", "task_c", "agent:worker", { session_id: "s2" });
    clean(log);
  });

  it("a lost session takes its tasks with it, one that was handed to it too late as well", () => {
    const log = new LogBuilder();
    taken(log);
    log.submit("task_c", { source: "agent:planner" });
    log.task("started", "task_c", "agent:planner");
    del(log, "requested", "task_c");
    del(log, "accepted", "task_c", IN_S1);
    const error = lose(log);
    fail(log, error);
    handOff(log, "task_c");
    fail(log, error, { id: "task_c" });
    clean(log);
  });

  it("the id of a forgotten session, used again, has nothing of what the first one had", () => {
    const log = new LogBuilder();
    log.epoch({ retentionMs: 1_000 });
    taken(log);
    session(log, "closed", "s1", { source: "agent:worker" });
    log.wait(1_001);
    session(log, "opened", "s1", { source: "agent:worker" });
    ready(log, "s1");
    log.task("progress", "task_t", "agent:worker", { session_id: "s2" });
    log.task("completed", "task_t", "agent:worker");
    clean(log);
  });

  it("a task may be worked off so late that the loss of its session is forgotten", () => {
    const log = new LogBuilder();
    log.epoch({ retentionMs: 1_000 });
    taken(log);
    const error = lose(log);
    log.wait(1_001);
    fail(log, error);
    clean(log);
  });

  it("a lost session that is met in the middle of the log", () => {
    const log = new LogBuilder();
    log.task("progress", "task_t", "agent:worker", IN_S1);
    fail(log, lose(log));
    clean(log, { lenient: true });
  });
});
