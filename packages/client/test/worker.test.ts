/** Working for others, against a peer. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { Agent, JobContext, Worker, WorkerOptions } from "../src/index.ts";
import { type Judged, type Peer, type PeerOptions, World } from "./world.ts";

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

const sent = (peer: Peer, type?: string): Envelope[] =>
  peer.arrivals
    .map(({ bytes }) => JSON.parse(bytes) as Envelope)
    .filter((envelope) => type === undefined || envelope.type === type);

const payloadOf = (envelope?: Envelope): JsonObject => (envelope?.payload ?? {}) as JsonObject;
const errorIn = (envelope?: Envelope): JsonObject =>
  (payloadOf(envelope).error ?? {}) as JsonObject;

interface Setting {
  peer: Peer;
  agent: Agent;
  worker: Worker;
  beats: { at: number; envelope: Envelope }[];
  errors: HarmovelaError[];
  /** Jobs under way by task. */
  jobs: Map<string, { ctx: JobContext; end(value: JsonValue): void; fail(error: unknown): void }>;
}

/** A worker whose jobs end when the test says so, before a peer that makes each session ready. */
async function setting(
  world: World,
  options: Partial<WorkerOptions> = {},
  peerOptions: PeerOptions & { answer?: (opened: Envelope) => Partial<Envelope> } = {},
  hearing: "heeds its signal" | "deaf" = "heeds its signal",
): Promise<Setting> {
  const { answer = isReady, judge, reads, ...rest } = peerOptions;
  const opened: Envelope[] = [];
  const peer: Peer = await world.peer({
    ...rest,
    judge: (judged) => {
      if (judged.envelope.type === "session.opened" && judged.count === 1)
        opened.push(judged.envelope);
      return judge?.(judged) ?? "accept";
    },
    reads: { list: () => ({ tasks: [] }), delegation: ({ task_id }) => pending(task_id), ...reads },
  });
  const beats: Setting["beats"] = [];
  peer.bus.subscribe("hv.default.live.>", ({ data }) => {
    const envelope = JSON.parse(new TextDecoder().decode(data)) as Envelope;
    beats.push({ at: world.clock.monotonic(), envelope });
  });
  const answerAll = (): void => {
    for (const opening of opened.splice(0))
      peer.append({ type: "session.ready", ...answer(opening) }).catch(() => undefined);
    world.clock.after(10, answerAll);
  };
  answerAll();
  const { agent } = world.agent({ agent: "agent:w" });
  const jobs: Setting["jobs"] = new Map();
  const errors: HarmovelaError[] = [];
  const worker = await world.run(
    agent.worker(
      { concurrency: 1, onError: (error) => errors.push(error), ...options },
      (job, ctx) =>
        new Promise<JsonValue>((resolve, reject) => {
          jobs.set(job.taskId, { ctx, end: resolve, fail: reject });
          if (hearing === "deaf") return;
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
        }),
    ),
  );
  return { peer, agent, worker, beats, errors, jobs };
}

const isReady = ({ session_id, payload }: Envelope): Partial<Envelope> => ({
  session_id: session_id ?? "",
  payload: {
    session_id: session_id ?? "",
    capabilities: (payload as { capabilities: JsonObject }).capabilities,
  },
});

const pending = (task_id: JsonValue | undefined): JsonObject => ({
  task_id: task_id ?? "",
  state: "requested",
  delegated_to: "agent:w",
});

const offer = (peer: Peer, task_id: string, more: Partial<Envelope> = {}): Promise<string> =>
  peer.append({
    type: "delegation.requested",
    source: "agent:p",
    target: "agent:w",
    task_id,
    parent_task_id: "p",
    delegated_by: "agent:p",
    delegated_to: "agent:w",
    payload: { work_description: `do ${task_id}` },
    ...more,
  });

describe("a worker's session", () => {
  it("is opened with what was declared and kept alive at the agreed interval", async () => {
    await using world = new World();
    const { peer, worker, beats } = await setting(
      world,
      { heartbeatMs: 300, capabilities: { profiles: ["harmovela.core.v1"] } },
      {
        answer: (opening) => ({
          ...isReady(opening),
          payload: { capabilities: { heartbeat_interval_ms: 500 } },
        }),
      },
    );
    const [opening] = sent(peer, "session.opened");
    const capabilities = payloadOf(opening).capabilities as JsonObject;
    assert.equal(capabilities.heartbeat_interval_ms, 300);
    assert.deepEqual(capabilities.profiles, ["harmovela.core.v1"]);
    assert.equal(opening?.session_id, worker.sessionId);
    await world.pass(2_600);
    assert.ok(beats.length >= 5, `${beats.length}`);
    for (const [i, { at, envelope }] of beats.entries()) {
      assert.equal(envelope.type, "session.heartbeat");
      assert.equal(envelope.session_id, worker.sessionId);
      assert.equal(at - (beats[0]?.at ?? 0), i * 500);
    }
    await world.run(worker.close());
    await world.run(worker.closed);
    const count = beats.length;
    await world.pass(3_000);
    assert.equal(beats.length, count);
    assert.equal(sent(peer).at(-1)?.type, "session.closed");
  });

  it("that is refused is no worker", async () => {
    await using world = new World();
    const error = { code: "unsupported_profile", message: "no", retryable: false };
    const answer = ({ session_id = "" }: Envelope): Partial<Envelope> => ({
      type: "session.error",
      session_id,
      payload: { session_id, error },
    });
    await assert.rejects(setting(world, {}, { answer }), isCode("unsupported_profile"));
  });

  it("that never becomes ready is no worker", async () => {
    await using world = new World();
    const answer = (): Partial<Envelope> => ({ type: "agent.message.sent" });
    await assert.rejects(setting(world, {}, { answer }), isCode("timeout"));
  });

  it("that is ready and lost before its opening is answered is no worker", async () => {
    await using world = new World();
    const error = { code: "session_timeout", message: "silent", retryable: true };
    const isFirst = ({ envelope, count }: Judged) =>
      envelope.type === "session.opened" && count === 1;
    let said: Promise<unknown> = Promise.resolve();
    const peer: Peer = await world.peer({
      judge: (judged) => {
        const { session_id = "" } = judged.envelope;
        if (isFirst(judged)) {
          const lost = { type: "session.error", session_id, payload: { session_id, error } };
          said = peer
            .append({ type: "session.ready", ...isReady(judged.envelope) })
            .then(() => peer.append(lost));
        }
        return "accept";
      },
      loses: isFirst,
    });
    const { agent } = world.agent({ agent: "agent:w" });
    const worker = agent.worker({ concurrency: 1 }, () => undefined);
    await assert.rejects(world.run(worker), isCode("session_timeout"));
    await world.run(said);
  });

  it("that is lost ends its jobs, and another is opened", async () => {
    await using world = new World();
    const { peer, worker, jobs, errors } = await setting(world);
    await world.run(offer(peer, "t"));
    await world.pass(100);
    const session_id = worker.sessionId ?? "";
    const error = { code: "session_timeout", message: "silent", retryable: true };
    const payload = { session_id, error };
    await world.run(peer.append({ type: "session.error", session_id, payload }));
    await world.pass(1_000);
    assert.equal(jobs.get("t")?.ctx.signal.aborted, true);
    const [failed] = sent(peer, "task.failed");
    assert.equal(errorIn(failed).code, "session_timeout");
    assert.notEqual(worker.sessionId, session_id);
    assert.equal(failed?.session_id, worker.sessionId);
    assert.deepEqual(
      errors.map(({ code }) => code),
      ["session_timeout"],
    );
    await world.run(offer(peer, "u"));
    await world.pass(100);
    assert.ok(jobs.has("u"));
  });
});

describe("a worker", () => {
  it("wants a whole number of jobs", async () => {
    await using world = new World();
    const { agent } = world.agent();
    for (const concurrency of [0, 1.5, Number.NaN])
      await assert.rejects(
        agent.worker({ concurrency }, () => null),
        isCode("invalid_argument"),
      );
    await assert.rejects(
      agent.worker({ concurrency: 1 }, undefined as never),
      isCode("invalid_argument"),
    );
  });

  it("accepts, starts and completes in its session, naming parties and parent", async () => {
    await using world = new World();
    const { peer, worker, jobs } = await setting(world);
    await world.run(offer(peer, "t"));
    await world.pass(100);
    await world.run(jobs.get("t")?.ctx.progress({ progress: 0.5 }) ?? Promise.reject());
    jobs.get("t")?.end({ n: 1 });
    await world.pass(100);
    const said = sent(peer).slice(1);
    assert.deepEqual(
      said.map(({ type }) => type),
      ["delegation.accepted", "task.started", "task.progress", "task.completed"],
    );
    assert.ok(
      said.every(({ session_id, task_id }) => session_id === worker.sessionId && task_id === "t"),
    );
    const { delegated_by, delegated_to, parent_task_id } = said[0] ?? {};
    assert.deepEqual([delegated_by, delegated_to, parent_task_id], ["agent:p", "agent:w", "p"]);
    assert.deepEqual(payloadOf(said[3]).result, { n: 1 });
    assert.equal(worker.running, 0);
  });

  it("takes nothing that is for others, and nothing twice", async () => {
    await using world = new World();
    const { peer, jobs } = await setting(world, { concurrency: 5 });
    await world.run(offer(peer, "x", { delegated_to: "agent:v", target: "agent:v" }));
    await world.run(offer(peer, "t"));
    await world.pass(100);
    assert.deepEqual([...jobs.keys()], ["t"]);
    assert.equal(sent(peer, "delegation.accepted").length, 1);
  });

  it("leaves a job to whoever was quicker", async () => {
    await using world = new World();
    const lost = { code: "protocol_error", message: "accepted already", retryable: false };
    const judge = ({ envelope }: Judged) =>
      envelope.type === "delegation.accepted" && envelope.task_id === "t" ? lost : "accept";
    const { peer, jobs } = await setting(world, {}, { judge });
    await world.run(offer(peer, "t"));
    await world.run(offer(peer, "u"));
    await world.pass(100);
    assert.deepEqual([...jobs.keys()], ["u"]);
    assert.deepEqual(
      sent(peer, "task.started").map(({ task_id }) => task_id),
      ["u"],
    );
  });

  it("says the same acceptance again until it knows what became of it", async () => {
    await using world = new World();
    let isAway = true;
    const judge = ({ envelope }: Judged) =>
      isAway && envelope.type === "delegation.accepted" ? "ignore" : "accept";
    const { peer, jobs } = await setting(world, {}, { judge });
    await world.run(offer(peer, "t"));
    await world.pass(700_000);
    isAway = false;
    await world.pass(120_000);
    assert.ok(jobs.has("t"));
    const ids = new Set(sent(peer, "delegation.accepted").map(({ id }) => id));
    assert.equal(ids.size, 1);
  });

  it("runs no more than it can, and refuses what waits for too long", async () => {
    await using world = new World();
    const { peer, worker, jobs } = await setting(world, { concurrency: 2, patienceMs: 1_000 });
    for (const id of ["a", "b", "c", "d"]) await world.run(offer(peer, id));
    await world.pass(500);
    assert.deepEqual([...jobs.keys()], ["a", "b"]);
    assert.equal(worker.running, 2);
    jobs.get("a")?.end(null);
    await world.pass(100);
    assert.deepEqual([...jobs.keys()], ["a", "b", "c"]);
    await world.pass(1_000);
    const [refusal, ...more] = sent(peer, "delegation.rejected");
    assert.deepEqual([refusal?.task_id, more.length], ["d", 0]);
    const { reason, retry_after } = payloadOf(refusal);
    assert.equal(reason, "at capacity");
    assert.ok(Date.parse(String(retry_after)) > Date.now());
  });

  it("does not refuse what a fellow has taken meanwhile", async () => {
    await using world = new World();
    const taken = new Set<unknown>();
    const { peer } = await setting(
      world,
      { patienceMs: 1_000 },
      {
        reads: {
          delegation: ({ task_id }) =>
            taken.has(task_id) ? { ...pending(task_id), state: "accepted" } : pending(task_id),
        },
      },
    );
    for (const id of ["a", "seen", "unseen"]) await world.run(offer(peer, id));
    const fellow = { source: "agent:w", session_id: "another", task_id: "seen" };
    await world.run(peer.append({ type: "delegation.accepted", ...fellow }));
    taken.add("unseen");
    await world.pass(3_000);
    assert.deepEqual(sent(peer, "delegation.rejected"), []);
  });

  it("finds what was offered before it was there, and what it is escalated", async () => {
    await using world = new World();
    const request: Envelope = {
      spec_version: "0.2",
      id: "evt_before",
      type: "delegation.requested",
      source: "agent:p",
      created_at: "2026-11-30T10:00:00Z",
      task_id: "before",
      payload: { work_description: "waits" },
    };
    const { peer, jobs } = await setting(
      world,
      { concurrency: 2 },
      {
        reads: {
          list: () => ({
            tasks: [
              { task_id: "before", target: "agent:w" },
              { task_id: "gone", target: "agent:w" },
            ],
          }),
          delegation: ({ task_id }) => {
            if (task_id === "gone") throw new HarmovelaError("task_error", "no such task");
            const by = task_id === "before" ? "agent:p" : "agent:boss";
            return { ...pending(task_id), opened_by: "evt_before", delegated_by: by };
          },
          history: () => ({ events: [request as unknown as JsonObject] }),
        },
      },
    );
    await world.pass(100);
    assert.ok(jobs.has("before"));
    const parties = { delegated_by: "agent:boss", delegated_to: "agent:w" };
    await world.run(peer.append({ type: "delegation.escalated", task_id: "up", ...parties }));
    await world.pass(100);
    assert.ok(jobs.has("up"));
  });

  it("begins when the promised handoff is there, or after waiting for it", async () => {
    await using world = new World();
    const { peer, jobs } = await setting(world, { concurrency: 2, handoffWaitMs: 5_000 });
    const payload = { handoff: "follows" };
    await world.run(offer(peer, "a", { payload }));
    await world.run(offer(peer, "b", { payload }));
    await world.pass(1_000);
    assert.equal(jobs.size, 0);
    await world.run(peer.append({ type: "delegation.handoff.completed", task_id: "a" }));
    await world.pass(100);
    assert.deepEqual([...jobs.keys()], ["a"]);
    await world.pass(5_000);
    assert.deepEqual([...jobs.keys()], ["a", "b"]);
  });

  it("says nothing more about a task that was taken from it", async () => {
    for (const [type, more] of [
      ["delegation.escalated", { delegated_to: "agent:v" }],
      ["delegation.rejected", { source: "agent:w", session_id: "another" }],
      ["task.cancelled", {}],
    ] as const) {
      await using world = new World();
      const { peer, worker, jobs } = await setting(world);
      await world.run(offer(peer, "t"));
      await world.pass(100);
      await world.run(peer.append({ type, task_id: "t", ...more }));
      await world.pass(100);
      const { signal } = jobs.get("t")?.ctx ?? {};
      assert.ok(signal?.aborted && isCode("task_cancelled")(signal.reason), type);
      assert.equal(signal.reason.details.type, type);
      assert.equal(sent(peer).at(-1)?.type, "task.started");
      assert.equal(worker.running, 0);
    }
  });

  it("A13 a job that does not heed its signal gives its slot up when its task has ended, and is reported", async () => {
    for (const end of ["task.cancelled", "task.timed_out"]) {
      await using world = new World();
      const { peer, worker, jobs, errors } = await setting(
        world,
        { patienceMs: 60_000 },
        {},
        "deaf",
      );
      for (const id of ["t", "next"]) await world.run(offer(peer, id));
      await world.pass(100);
      await world.run(peer.append({ type: "task.cancel.requested", task_id: "t" }));
      await world.pass(10_000);
      // It may still end by itself: the slot is its own until the forced end.
      assert.deepEqual([[...jobs.keys()], errors], [["t"], []]);
      await world.run(peer.append({ type: end, task_id: "t" }));
      await world.pass(1_000);
      assert.deepEqual([...jobs.keys()], ["t"]);
      await world.pass(2_000);
      assert.deepEqual([...jobs.keys()], ["t", "next"]);
      assert.deepEqual(
        errors.map(({ code, details }) => [code, details?.task_id]),
        [["task_cancelled", "t"]],
      );
      // What it says in the end is said by nobody.
      jobs.get("t")?.end("late");
      jobs.get("next")?.end("done");
      await world.pass(100);
      assert.deepEqual(
        sent(peer, "task.completed").map(({ task_id }) => task_id),
        ["next"],
      );
      assert.equal(worker.running, 0);
    }
  });

  it("a job that has returned is not reported, whatever becomes of its task later", async () => {
    await using world = new World();
    const { peer, jobs, errors } = await setting(
      world,
      {},
      { judge: ({ envelope }) => (envelope.type === "task.completed" ? "ignore" : "accept") },
    );
    await world.run(offer(peer, "t"));
    await world.pass(100);
    jobs.get("t")?.end("done");
    await world.pass(100);
    await world.run(peer.append({ type: "task.cancelled", task_id: "t" }));
    await world.pass(4_000);
    assert.deepEqual(errors, []);
  });

  it("ends as cancelled what it is asked to cancel", async () => {
    await using world = new World();
    const { peer } = await setting(world);
    await world.run(offer(peer, "t"));
    await world.pass(100);
    await world.run(peer.append({ type: "task.cancel.requested", task_id: "t" }));
    await world.pass(100);
    assert.equal(sent(peer).at(-1)?.type, "task.cancelled");
  });

  it("tells no text of a foreign error", async () => {
    await using world = new World();
    const { peer, jobs } = await setting(world);
    await world.run(offer(peer, "t"));
    await world.pass(100);
    jobs.get("t")?.fail(new RangeError("the password is 1234"));
    await world.pass(100);
    const error = errorIn(sent(peer, "task.failed")[0]);
    assert.equal(error.code, "tool_error");
    assert.equal(error.message, "the job threw RangeError");
    assert.doesNotMatch(JSON.stringify(error), /1234|\.ts/);
  });

  it("fails its task by whatever is thrown, also by what cannot be looked into or is no JSON", async () => {
    await using world = new World();
    const { peer, jobs, errors } = await setting(world, { concurrency: 9 });
    const trap = (): never => {
      throw new RangeError("not to be looked into");
    };
    const named = (name: unknown) => Object.assign(new Error("x"), { name });
    const thrown: Record<string, unknown> = {
      closed: new Proxy({}, { getPrototypeOf: trap }),
      evil: Object.defineProperty(new Error("x"), "name", { get: trap }),
      symbol: named(Symbol("x")),
      list: named(["RangeError"]),
      nothing: undefined,
      wide: new HarmovelaError("tool_error", "m", { details: { at_ns: 2 ** 60 } }),
    };
    for (const [task, what] of Object.entries(thrown)) {
      await world.run(offer(peer, task));
      await world.pass(100);
      jobs.get(task)?.fail(what);
      await world.pass(100);
    }
    const failures = sent(peer, "task.failed").map((envelope) => {
      const { code, message, details } = errorIn(envelope);
      const { at_ns: at } = details as { at_ns?: unknown };
      return [envelope.task_id, code, message, ...(at === undefined ? [] : [at])];
    });
    assert.deepEqual(failures, [
      ["closed", "tool_error", "the job threw Error"],
      ["evil", "tool_error", "the job threw Error"],
      ["symbol", "tool_error", "the job threw Error"],
      ["list", "tool_error", "the job threw Error"],
      ["nothing", "tool_error", "the job threw undefined"],
      ["wide", "tool_error", "m", "1152921504606847000"],
    ]);
    assert.deepEqual(errors, []);
  });

  it("drains: takes nothing more, lets jobs end, then stops them", async () => {
    await using world = new World();
    const { peer, worker, jobs } = await setting(world, { concurrency: 3, drainMs: 10_000 });
    await world.run(offer(peer, "a"));
    await world.run(offer(peer, "b"));
    await world.run(offer(peer, "c", { payload: { handoff: "follows" } }));
    await world.pass(100);
    const closed = worker.close();
    await world.run(offer(peer, "late"));
    jobs.get("a")?.end("done");
    await world.pass(1_000);
    assert.equal(jobs.get("b")?.ctx.signal.aborted, false);
    await world.run(closed);
    assert.equal(jobs.has("late"), false);
    const ends = sent(peer).map(({ type, task_id }) => `${type} ${task_id ?? ""}`);
    assert.ok(ends.includes("task.completed a"));
    assert.ok(ends.includes("task.failed b"));
    assert.equal(ends.at(-1), "session.closed ");
    assert.deepEqual(sent(peer, "delegation.rejected"), []);
  });

  it("is closed with its agent, with the time that it was given for its jobs", async () => {
    for (const [drainMs, end] of [
      [20_000, "task.completed"],
      [1_000, "task.failed"],
      [undefined, "task.failed"],
    ] as const) {
      await using world = new World();
      const options = drainMs === undefined ? {} : { drainMs };
      const { peer, agent, jobs } = await setting(world, options);
      await world.run(offer(peer, "t"));
      await world.pass(100);
      const closed = agent.close();
      // Longer than an agent waits for verdicts.
      await world.pass(10_000);
      jobs.get("t")?.end("done");
      await world.run(closed);
      const ends = sent(peer).filter(({ task_id }) => task_id === "t");
      assert.equal(ends.at(-1)?.type, end, String(drainMs));
    }
  });

  it("gives back what it has accepted and cannot begin", async () => {
    await using world = new World();
    const options = { drainMs: 1_000, handoffWaitMs: 60_000 };
    const { peer, worker } = await setting(world, options);
    await world.run(offer(peer, "t", { payload: { handoff: "follows" } }));
    await world.pass(100);
    await world.run(worker.close());
    assert.deepEqual(
      sent(peer)
        .slice(1)
        .map(({ type }) => type),
      ["delegation.accepted", "delegation.rejected", "session.closed"],
    );
  });

  it("closes on the signal it was told to listen for", async () => {
    await using world = new World();
    const listeners = new Set<() => void>();
    const drainOn = {
      on: (_signal: "SIGTERM", listener: () => void) => listeners.add(listener),
      off: (_signal: "SIGTERM", listener: () => void) => listeners.delete(listener),
    };
    const { worker } = await setting(world, { drainOn });
    for (const listener of [...listeners]) listener();
    await world.run(worker.closed);
    assert.equal(listeners.size, 0);
  });
});
