/** Handles, workers and reads against a peer. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Settled, WorkerTask } from "../src/index.ts";
import { type Peer, type PeerOptions, World } from "./world.ts";

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

/** A peer that answers the read `task` from a table. */
async function taskPeer(
  world: World,
  tasks: Map<string, JsonObject>,
  options: PeerOptions = {},
): Promise<Peer> {
  return world.peer({
    ...options,
    reads: { task: ({ task_id }) => tasks.get(String(task_id)) ?? null, ...options.reads },
  });
}

const end = (peer: Peer, task: string, name: string, more: object = {}) =>
  peer.append({ type: `task.${name}`, task_id: task, ...more });

describe("task handles", () => {
  it("settle whoever ends the task", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent();
    for (const state of ["completed", "failed", "cancelled", "timed_out"] as const) {
      const handle = await world.run(agent.submit({ description: state }));
      const settled = handle.settled();
      await world.run(end(peer, "another", state));
      await world.run(end(peer, handle.id, "progress"));
      const cursor = await world.run(end(peer, handle.id, state, { source: "agent:x" }));
      const outcome: Settled = await world.run(settled);
      assert.equal(outcome.state, state);
      assert.equal(outcome.taskId, handle.id);
      assert.equal(outcome.by, "agent:x");
      assert.equal(outcome.cursor, cursor);
      assert.deepEqual(await world.run(handle.settled()), outcome);
    }
  });

  it("miss nothing: the end may be logged before the submission's verdict arrives", async () => {
    await using world = new World();
    const peer = await world.peer({ loses: ({ count }) => count === 1 });
    const { agent } = world.agent();
    const submitted = agent.submit({ task_id: "t" });
    await world.pass(1_000);
    await world.run(end(peer, "t", "cancelled"));
    const handle = await world.run(submitted);
    assert.equal((await world.run(handle.settled())).state, "cancelled");
  });

  it("say what a task does, in the task's order", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent({ tenant: "acme" });
    const root = await world.run(
      agent.submit({
        task_id: "root",
        target: "agent:w",
        timeout_ms: 5,
        payload: { priority: "low" },
      }),
    );
    const all = [
      root.accept(),
      root.start(),
      root.block("waits"),
      root.progress({ message: "m", progress: 0.5 }),
      root.output({ result: [1] }),
      root.fail({ code: "tool_error", message: "broke" }),
      root.fail(new HarmovelaError("timeout", "slow")),
      root.cancel({ reason: "r", grace_period_ms: 10 }),
      root.cancel({ now: true }),
      root.complete({ n: 1 }),
    ];
    await world.run(Promise.all(all));
    await world.run(root.child({ task_id: "leaf" }));
    const said = peer.arrivals.map(({ bytes }) => {
      const { type, task_id, payload, target, parent_task_id, tenant_id } = JSON.parse(bytes);
      assert.equal(tenant_id, "acme");
      assert.equal(payload.task_id, task_id);
      const { task_id: _, ...rest } = payload;
      return [
        type,
        { ...rest, ...(target && { target }), ...(parent_task_id && { parent_task_id }) },
      ];
    });
    assert.deepEqual(said.slice(0, 6), [
      ["task.submitted", { priority: "low", state: "submitted", timeout_ms: 5, target: "agent:w" }],
      ["task.accepted", { state: "accepted" }],
      ["task.started", { state: "started" }],
      ["task.blocked", { state: "blocked", reason: "waits" }],
      ["task.progress", { state: "progress", message: "m", progress: 0.5 }],
      ["task.output", { state: "output", result: [1] }],
    ]);
    const failed = { code: "tool_error", message: "broke", retryable: false };
    assert.deepEqual(said[6], ["task.failed", { state: "failed", error: failed }]);
    assert.equal(said[7]?.[1].error.code, "internal_error");
    assert.deepEqual(said.slice(8), [
      ["task.cancel.requested", { reason: "r", grace_period_ms: 10 }],
      ["task.cancelled", { state: "cancelled" }],
      ["task.completed", { state: "completed", result: { n: 1 } }],
      ["task.submitted", { state: "submitted", parent_task_id: "root" }],
    ]);
  });

  it("of tasks that exist: settled before, ends later, does not exist", async () => {
    await using world = new World();
    const tasks = new Map<string, JsonObject>();
    const peer = await taskPeer(world, tasks);
    const { agent } = world.agent();
    await world.run(end(peer, "old", "failed"));
    tasks.set("old", { state: "failed", winner: { seq: 1 } });
    tasks.set("live", { state: "started" });
    const old = await world.run(agent.handle("old").settled());
    assert.equal(old.state, "failed");
    assert.equal(old.cursor, "HV_LOG_TASKS:1");
    const live = agent.handle("live").settled();
    await world.pass(1_000);
    await world.run(end(peer, "live", "completed"));
    assert.equal((await world.run(live)).state, "completed");
    tasks.set("trimmed", { state: "failed", winner: { seq: 1 } });
    world.server.faults.trim("HV_LOG_TASKS", 2);
    const trimmed = agent.handle("trimmed");
    await assert.rejects(world.run(trimmed.settled()), isCode("task_error"));
    const none = agent.handle("none");
    await assert.rejects(world.run(none.settled()), isCode("task_error"));
    await assert.rejects(world.run(none.settled()), isCode("task_error"));
  });

  it("a refused submission leaves nothing behind and says why", async () => {
    await using world = new World();
    const error = { code: "task_error", message: "m", retryable: false };
    await world.peer({ judge: () => error });
    const { agent } = world.agent();
    await assert.rejects(world.run(agent.submit({ task_id: "t" })), isCode("task_error"));
  });

  it("closing the agent ends the wait", async () => {
    await using world = new World();
    await world.peer();
    const { agent } = world.agent();
    const handle = await world.run(agent.submit({}));
    const settled = assert.rejects(handle.settled(), isCode("closed"));
    await world.run(agent.close());
    await settled;
    await assert.rejects(agent.submit({}), isCode("closed"));
  });
});

describe("tasks of a worker", () => {
  const submit = (peer: Peer, task: string, target = "agent:w") =>
    peer.append({ type: "task.submitted", task_id: task, target, source: "agent:p" });
  const next = async (world: World, stream: AsyncIterator<WorkerTask>): Promise<WorkerTask> => {
    const { value } = await world.run(stream.next());
    assert.ok(value);
    return value;
  };

  it("those that wait come first, then new ones; ended ones and those of others do not", async () => {
    await using world = new World();
    const tasks = new Map<string, JsonObject>([
      ["ended", { state: "cancelled" }],
      ["taken", { state: "started", owner: "agent:other" }],
      ["begun", { state: "progress", owner: "agent:w" }],
      ["open", { state: "submitted" }],
      ["new", { state: "submitted" }],
    ]);
    const peer = await taskPeer(world, tasks);
    for (const id of ["ended", "taken", "begun", "unknown", "open"])
      await world.run(submit(peer, id));
    await world.run(submit(peer, "elsewhere", "agent:x"));
    const { agent } = world.agent({ agent: "agent:w" });
    const stream = agent.tasks();
    const begun = await next(world, stream);
    assert.equal(begun.id, "begun");
    assert.equal(begun.stateAtOffer, "progress");
    const open = await next(world, stream);
    assert.equal(open.id, "open");
    assert.equal(open.submission.source, "agent:p");
    assert.equal(open.signal.aborted, false);
    const fresh = stream.next();
    await world.run(submit(peer, "new"));
    assert.equal((await world.run(fresh)).value?.id, "new");
    const last = stream.next();
    await world.run(stream.return());
    assert.equal((await world.run(last)).done, true);
  });

  for (const [what, entry] of [
    ["a cancellation that is asked for", { type: "task.cancel.requested" }],
    ["an end by somebody else", { type: "task.timed_out" }],
    ["an end in its own name by another process", { type: "task.completed", source: "agent:w" }],
  ] as const) {
    it(`the signal aborts on ${what}`, async () => {
      await using world = new World();
      const peer = await taskPeer(world, new Map([["t", { state: "submitted" }]]));
      await world.run(submit(peer, "t"));
      const { agent } = world.agent({ agent: "agent:w" });
      const task = await next(world, agent.tasks());
      const aborted = new Promise<void>((resolve) => {
        task.signal.addEventListener("abort", () => resolve());
      });
      await world.run(peer.append({ ...entry, task_id: "other" }));
      await world.run(peer.append({ type: "task.progress", task_id: "t" }));
      assert.equal(task.signal.aborted, false);
      await world.run(peer.append({ ...entry, id: "evt_stop", task_id: "t" }));
      await world.run(aborted);
      assert.ok(isCode("task_cancelled")(task.signal.reason));
      const { details } = task.signal.reason as HarmovelaError;
      assert.deepEqual(details, { event_id: "evt_stop", type: entry.type, task_id: "t" });
    });
  }

  it("the signal does not abort on the worker's own end", async () => {
    await using world = new World();
    const peer = await taskPeer(world, new Map([["t", { state: "submitted" }]]));
    await world.run(submit(peer, "t"));
    const { agent } = world.agent({ agent: "agent:w" });
    const task = await next(world, agent.tasks());
    await world.run(task.complete());
    assert.equal((await world.run(task.settled())).by, "agent:w");
    assert.equal(task.signal.aborted, false);
    await world.run(agent.close());
    assert.equal(task.signal.aborted, false);
  });

  it("a task whose cancellation was asked for before comes with an aborted signal", async () => {
    await using world = new World();
    const view = { state: "started", owner: "agent:w", cancel_requested_by: "evt_c" };
    const peer = await taskPeer(world, new Map([["t", view]]));
    await world.run(submit(peer, "t"));
    const { agent } = world.agent({ agent: "agent:w" });
    const task = await next(world, agent.tasks());
    assert.equal(task.signal.aborted, true);
  });

  it("closing the agent aborts what is being worked on", async () => {
    await using world = new World();
    const peer = await taskPeer(world, new Map([["t", { state: "submitted" }]]));
    await world.run(submit(peer, "t"));
    const { agent } = world.agent({ agent: "agent:w" });
    const task = await next(world, agent.tasks());
    await world.run(agent.close());
    assert.ok(isCode("closed")(task.signal.reason));
  });

  it("a service that is away for a moment loses no task", async () => {
    await using world = new World();
    const peer = await world.peer();
    await world.run(submit(peer, "t"));
    peer.bus.disconnected("lost");
    const { agent } = world.agent({ agent: "agent:w", retry: { noServiceMs: 100 } });
    const first = agent.tasks().next();
    await world.pass(60_000);
    await world.run(taskPeer(world, new Map([["t", { state: "submitted" }]])));
    assert.equal((await world.run(first)).value?.id, "t");
  });
});

describe("reads", () => {
  it("name what the agent's own verdicts have named, and give position and result", async () => {
    await using world = new World();
    const asked: JsonObject[] = [];
    const echo = (params: JsonObject) => {
      asked.push(params);
      return { ok: true };
    };
    await world.peer({ reads: { task: echo, tree: echo, why: echo, history: echo } });
    const { agent } = world.agent();
    const reading = await world.run(agent.task("t"));
    assert.deepEqual(reading, { position: "HV_LOG_TASKS:1", result: { ok: true } });
    for (let i = 0; i < 12; i++)
      await world.run(agent.publish({ type: "agent.message.sent", payload: {} }));
    await world.run(Promise.all([agent.tree("t"), agent.why("t"), agent.history("t")]));
    await world.run(agent.read("tasks", "task", { task_id: "t", cursor: "HV_LOG_TASKS:3" }));
    assert.deepEqual(asked[0], { task_id: "t" });
    for (const params of asked.slice(1, 4))
      assert.deepEqual(params, { task_id: "t", cursor: "HV_LOG_TASKS:12" });
    assert.equal(asked[4]?.cursor, "HV_LOG_TASKS:3");
  });

  it("a refusal is typed; nobody there is no_service within 2 s", async () => {
    await using world = new World();
    await world.peer();
    const { agent } = world.agent();
    await assert.rejects(world.run(agent.read("tasks", "nothing")), isCode("invalid_query"));
    const before = world.clock.monotonic();
    await assert.rejects(world.run(agent.read("beliefs", "status")), isCode("no_service"));
    assert.ok(world.clock.monotonic() - before <= 2_000);
  });
});
