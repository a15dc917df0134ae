/** Delegating, against a peer. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { DelegateOptions, DelegationHandle } from "../src/index.ts";
import { type Peer, type PeerOptions, World } from "./world.ts";

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

/** Issues a token for every task that was accepted, and knows of no other. */
function issuing(accepted: Set<string>): PeerOptions["reads"] {
  return {
    token: ({ task_id }) => {
      if (!accepted.has(String(task_id)))
        throw new HarmovelaError("unauthorized", "only the delegator gets a token");
      return { token: `token-of-${task_id}` };
    },
  };
}

const sent = (peer: Peer): Envelope[] =>
  peer.arrivals.map(({ bytes }) => JSON.parse(bytes) as Envelope);

const payloadOf = (envelope?: Envelope): JsonObject => (envelope?.payload ?? {}) as JsonObject;

async function offered(
  world: World,
  options: DelegateOptions = {},
  peerOptions: PeerOptions = {},
): Promise<{ peer: Peer; handle: DelegationHandle }> {
  const peer = await world.peer(peerOptions);
  const { agent } = world.agent();
  const handle = await world.run(agent.delegate("agent:b", "do it", { task_id: "t", ...options }));
  return { peer, handle };
}

const says = (peer: Peer, type: string, more: Partial<Envelope> = {}): Promise<string> =>
  peer.append({ type, task_id: "t", source: "agent:b", ...more });

describe("delegate", () => {
  it("offers with both parties, both tasks and what is to be done", async () => {
    await using world = new World();
    const deadline = new Date("2027-01-01T00:00:00Z");
    const { peer } = await offered(world, { parent: "p", key: "k", deadline });
    const [{ id: _id, created_at: _at, ...request } = { id: "", created_at: "" }] = sent(peer);
    assert.deepEqual(request, {
      spec_version: "0.2",
      type: "delegation.requested",
      source: "agent:a",
      target: "agent:b",
      task_id: "t",
      parent_task_id: "p",
      delegated_by: "agent:a",
      delegated_to: "agent:b",
      payload: {
        task_id: "t",
        parent_task_id: "p",
        work_description: "do it",
        key: "k",
        deadline: "2027-01-01T00:00:00.000Z",
      },
    });
  });

  it("promises a handoff where tokens are issued, and completes it after each acceptance", async () => {
    await using world = new World();
    const accepted = new Set<string>();
    const { peer, handle } = await offered(world, {}, { reads: issuing(accepted) });
    assert.equal(payloadOf(sent(peer)[0]).handoff, "follows");
    accepted.add("t");
    await world.run(says(peer, "delegation.accepted", { session_id: "s" }));
    const handoff = await world.run(handle.handoff);
    assert.equal(handoff.completed, true);
    const completed = sent(peer).at(-1);
    assert.equal(completed?.type, "delegation.handoff.completed");
    assert.equal(completed?.handoff_token, "token-of-t");
    assert.equal(completed?.delegated_to, "agent:b");
    assert.equal((await handle.accepted).sessionId, "s");

    const parties = { delegated_by: "agent:a", delegated_to: "agent:c" };
    await world.run(says(peer, "delegation.escalated", parties));
    await world.run(says(peer, "delegation.accepted", { source: "agent:c" }));
    await world.pass(1_000);
    assert.equal(sent(peer).at(-1)?.delegated_to, "agent:c");
    // Between others it is not this agent's to complete.
    const others = { delegated_by: "agent:c", delegated_to: "agent:d" };
    await world.run(says(peer, "delegation.escalated", others));
    await world.run(says(peer, "delegation.accepted", { source: "agent:d" }));
    await world.pass(1_000);
    assert.equal(peer.arrivals.length, 3);
  });

  it("completes no handoff when told not to, and none without a token", async () => {
    for (const options of [{ handoff: false }, {}]) {
      await using world = new World();
      const { peer, handle } = await offered(world, options);
      await world.run(says(peer, "delegation.accepted"));
      await world.run(handle.accepted);
      await world.pass(1_000);
      assert.equal(peer.arrivals.length, 1);
      const handoff = await world.run(handle.completeHandoff());
      assert.equal(handoff.completed === false && handoff.why.code, "missing_capability");
      assert.equal(payloadOf(sent(peer)[0]).handoff, undefined);
    }
  });

  it("has one result: the first end that is logged", async () => {
    await using world = new World();
    const { peer, handle } = await offered(world);
    await world.run(says(peer, "delegation.accepted"));
    await world.run(says(peer, "task.completed", { payload: { result: [1] } }));
    await world.run(says(peer, "task.completed", { payload: { result: [2] } }));
    await world.run(says(peer, "task.failed"));
    assert.deepEqual(await world.run(handle.result()), [1]);
    const types: string[] = [];
    for await (const { envelope } of handle.events()) types.push(envelope.type);
    assert.deepEqual(types, ["delegation.requested", "delegation.accepted", "task.completed"]);
  });

  it("rejects with how the task ended", async () => {
    const error = { code: "missing_capability", message: "no tool", retryable: false };
    for (const [type, code, payload] of [
      ["task.failed", "missing_capability", { error }],
      ["task.failed", "protocol_error", {}],
      ["task.cancelled", "task_cancelled", {}],
      ["task.timed_out", "task_timeout", {}],
    ] as const) {
      await using world = new World();
      const { peer, handle } = await offered(world);
      await world.run(says(peer, type, { payload }));
      await assert.rejects(world.run(handle.result()), isCode(code));
      await assert.rejects(world.run(handle.accepted), isCode("task_error"));
      assert.equal((await world.run(handle.handoff)).completed, false);
    }
  });

  describe("again", () => {
    const lost = { error: { code: "session_timeout", message: "lost", retryable: true } };
    const requests = (peer: Peer) => sent(peer).filter((e) => e.type === "delegation.requested");
    const lose = (peer: Peer, task_id: string): Promise<string> =>
      says(peer, "task.failed", { task_id, source: "service:peer", payload: lost });

    it("gives work whose worker was lost out again, as a new task, and has one result", async () => {
      await using world = new World();
      const { peer, handle } = await offered(world, { parent: "p", key: "k", again: 2 });
      await world.run(says(peer, "delegation.accepted", { session_id: "s1" }));
      await world.run(lose(peer, "t"));
      await world.pass(1_000);
      const [first, second, ...more] = requests(peer);
      assert.equal(more.length, 0);
      const task_id = second?.task_id ?? "";
      assert.notEqual(task_id, "t");
      assert.equal(handle.taskId, task_id);
      assert.deepEqual(
        { ...second, id: "", created_at: "", task_id: "" },
        {
          ...first,
          id: "",
          created_at: "",
          task_id: "",
          payload: { ...payloadOf(first), task_id, key: "k~2" },
        },
      );
      // The one that was lost wakes up: what it says is no result.
      await world.run(says(peer, "task.completed", { payload: { result: "late" } }));
      await world.run(says(peer, "delegation.accepted", { task_id, session_id: "s2" }));
      await world.run(says(peer, "task.completed", { task_id, payload: { result: "done" } }));
      assert.equal(await world.run(handle.result()), "done");
      assert.equal((await handle.accepted).sessionId, "s1");
      const types: string[] = [];
      for await (const { envelope } of handle.events()) types.push(envelope.type);
      assert.deepEqual(types, [
        "delegation.requested",
        "delegation.accepted",
        "task.failed",
        "delegation.requested",
        "delegation.accepted",
        "task.completed",
      ]);
    });

    it("does so as often as it was asked to, and for no other failure", async () => {
      for (const again of [0, 1, 2]) {
        await using world = new World();
        const { peer, handle } = await offered(world, { again });
        for (let count = 0; count <= again; count += 1) {
          await world.run(lose(peer, handle.taskId));
          await world.pass(1_000);
        }
        await assert.rejects(world.run(handle.result()), isCode("session_timeout"));
        assert.equal(requests(peer).length, again + 1);
      }
      await using world = new World();
      const { peer, handle } = await offered(world, { again: 3 });
      const error = { code: "task_timeout", message: "x", retryable: true };
      await world.run(says(peer, "task.failed", { payload: { error } }));
      await assert.rejects(world.run(handle.result()), isCode("task_timeout"));
      assert.equal(requests(peer).length, 1);
    });

    it("does not for work that was cancelled, and cancels the task that there is by then", async () => {
      await using world = new World();
      const { peer, handle } = await offered(world, { again: 1 });
      await world.run(lose(peer, "t"));
      await world.run(handle.cancel());
      const [cancel] = sent(peer).filter((e) => e.type === "task.cancel.requested");
      assert.equal(cancel?.task_id, requests(peer)[1]?.task_id);
      assert.equal(cancel?.task_id, handle.taskId);

      await using other = new World();
      const cancelled = await offered(other, { again: 1 });
      await other.run(cancelled.handle.cancel());
      await other.run(lose(cancelled.peer, "t"));
      await assert.rejects(other.run(cancelled.handle.result()), isCode("session_timeout"));
      assert.equal(requests(cancelled.peer).length, 1);
    });

    it("rejects with what kept it from being given out again", async () => {
      await using world = new World();
      const error = { code: "task_error", message: "the parent has ended", retryable: false };
      const judge: PeerOptions["judge"] = ({ envelope }) =>
        envelope.type === "delegation.requested" && envelope.task_id !== "t" ? error : "accept";
      const { peer, handle } = await offered(world, { again: 1 }, { judge });
      await world.run(lose(peer, "t"));
      await assert.rejects(world.run(handle.result()), isCode("task_error"));
      await assert.rejects(world.run(handle.cancel()), isCode("task_error"));
    });

    it("is a whole number, and needs a key that can be told apart", async () => {
      await using world = new World();
      await world.peer();
      const { agent } = world.agent();
      for (const options of [{ again: -1 }, { again: 0.5 }, { again: 1, key: "k".repeat(128) }])
        await assert.rejects(
          world.run(agent.delegate("agent:b", "x", options)),
          isCode("invalid_argument"),
        );
    });
  });

  it("rejects when the offer was refused, with when to ask again", async () => {
    await using world = new World();
    const { peer, handle } = await offered(world);
    const retry_after = new Date(Date.now() + 3_600_000).toISOString();
    const payload = { reason: "at capacity", retry_after };
    await world.run(says(peer, "delegation.rejected", { payload }));
    const isRefusal = (error: unknown): boolean => {
      assert.ok(error instanceof HarmovelaError && error.code === "task_error");
      assert.equal(error.details?.reason, "at capacity");
      return typeof error.retry === "object" && error.retry.afterMs > 3_000_000;
    };
    await assert.rejects(world.run(handle.accepted), isRefusal);
    await assert.rejects(world.run(handle.result()), isRefusal);
  });

  it("rejects with the deadline when nobody accepted before it", async () => {
    await using world = new World();
    const { peer, handle } = await offered(world);
    const error = { code: "task_timeout", message: "nobody accepted", retryable: true };
    const payload = { reason: "deadline_expired", error };
    await world.run(says(peer, "delegation.rejected", { source: "service:peer", payload }));
    await assert.rejects(world.run(handle.accepted), isCode("task_timeout"));
  });

  it("throws when the offer may not be made, and leaves nothing behind", async () => {
    await using world = new World();
    const error = { code: "unauthorized", message: "no part in it", retryable: false };
    await world.peer({ judge: () => error });
    const { agent } = world.agent();
    await assert.rejects(world.run(agent.delegate("agent:b", "x")), isCode("unauthorized"));
    await assert.rejects(
      world.run(agent.delegate("agent:b", "x", { deadline: new Date(Number.NaN) })),
      isCode("invalid_argument"),
    );
    for (const work of [null, undefined, 5, ["x"]])
      await assert.rejects(
        world.run(agent.delegate("agent:b", work as never)),
        isCode("invalid_argument"),
      );
  });

  it("ends with the agent", async () => {
    const world = new World();
    const { handle } = await offered(world);
    await world[Symbol.asyncDispose]();
    await assert.rejects(handle.result(), isCode("closed"));
    const types: string[] = [];
    for await (const { envelope } of handle.events()) types.push(envelope.type);
    assert.deepEqual(types, ["delegation.requested"]);
  });

  it("keeps a bounded part of a long story", async () => {
    await using world = new World();
    const { peer, handle } = await offered(world);
    for (let i = 0; i < 1_200; i++)
      await world.run(says(peer, "task.progress", { payload: { message: `${i}` } }));
    await world.run(says(peer, "task.completed"));
    await world.run(handle.result());
    const messages: unknown[] = [];
    for await (const { envelope } of handle.events()) messages.push(payloadOf(envelope).message);
    assert.equal(messages.length, 1_000);
    assert.deepEqual(messages.slice(-2), ["1199", undefined]);
  });
});
