/** Jobs that are stopped and go on, against peers and with time that is told when to pass. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Blobs, CHECKPOINT_BUCKET } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import {
  type Agent,
  BucketShelf,
  CHECKPOINT_BYTES_MAX,
  CheckpointStore,
  type Job,
  type JobContext,
  type Worker,
  type WorkerOptions,
} from "../src/index.ts";
import { type Judged, type Peer, World } from "./world.ts";

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

interface Started {
  job: Job;
  ctx: JobContext;
  end(value?: JsonValue): void;
  fail(error: unknown): void;
}

interface Setting {
  tasks: Peer;
  manager: Peer;
  agent: Agent;
  worker: Worker;
  errors: HarmovelaError[];
  /** Jobs in the order in which they began. */
  jobs: Started[];
  registry: Map<string, JsonObject>;
}

interface Options extends Partial<WorkerOptions> {
  heeds?: boolean;
  judge?: (judged: Judged) => "accept" | "ignore" | JsonObject;
  /** The task as the coordinator tells of it. */
  view?: JsonObject;
  hasStore?: boolean;
  /** What the task `t` is stands in the log from the beginning. */
  hasRequest?: boolean;
  /** Live tasks of the agent. */
  listed?: JsonObject[];
  /** How the last interruption was closed. */
  closed?: JsonObject;
  registered?: JsonObject;
}

const sent = (peer: Peer, type?: string): Envelope[] =>
  peer.arrivals
    .map(({ bytes }) => JSON.parse(bytes) as Envelope)
    .filter((envelope) => type === undefined || envelope.type === type);
const typesOf = (peer: Peer): string[] =>
  sent(peer)
    .map(({ type }) => type)
    .filter((type) => !type.startsWith("session."));
const payloadOf = (envelope?: Envelope): JsonObject => (envelope?.payload ?? {}) as JsonObject;

/** A worker of `agent:w` before a coordinator and a manager that accept what `judge` does not refuse. */
async function setting(world: World, options: Options = {}): Promise<Setting> {
  const { heeds = true, judge = () => "accept", view = {}, hasStore = true } = options;
  const { hasRequest = false, listed = [], closed, registered, ...rest } = options;
  const tasks: Peer = await world.peer({
    judge: (judged) => {
      const { id, type, session_id = "", payload } = judged.envelope;
      if (type === "session.opened" && judged.count === 1) {
        const { capabilities } = payload as { capabilities: JsonObject };
        const ready = { session_id, capabilities };
        world.clock.after(1, () => {
          tasks
            .append({ id: `ready_${id}`, type: "session.ready", session_id, payload: ready })
            .catch(() => undefined);
        });
      }
      return judge(judged);
    },
    reads: {
      list: ({ state }) => ({ tasks: state === "live" ? listed : [] }),
      delegation: ({ task_id = "" }) => ({
        task_id,
        state: "accepted",
        delegated_to: "agent:w",
        delegated_by: "agent:p",
        opened_by: "offer",
      }),
      task: ({ task_id = "" }) => ({
        task_id,
        state: "progress",
        owner: "agent:w",
        submitted_seq: tasks.logged.indexOf("offer") + 1,
        ...view,
      }),
    },
  });
  const registry: Setting["registry"] = new Map();
  if (registered) registry.set(String(registered.checkpoint_id), registered);
  if (hasRequest) await world.run(takenBefore(tasks));
  const manager = await world.peer({
    domain: "interruptions",
    judge: (judged) => {
      const verdict = judge(judged);
      const { type, checkpoint_id = "", checkpoint_at = "", task_id = "" } = judged.envelope;
      if (type === "interruption.saved" && verdict === "accept") {
        const { bytes_saved: bytes, ...more } = payloadOf(judged.envelope);
        const kept = { checkpoint_id, task_id, at: checkpoint_at, ...more };
        registry.set(checkpoint_id, bytes === undefined ? kept : { ...kept, bytes });
      }
      return verdict;
    },
    reads: {
      interruption: () => ({ past: closed ? [{ id: "i", policy: "save_and_stop", closed }] : [] }),
      checkpoints: () => ({ checkpoints: [...registry.values()] }),
      checkpoint: ({ checkpoint_id }) => {
        const found = registry.get(String(checkpoint_id));
        if (found) return found;
        throw new HarmovelaError("checkpoint_missing", "no such checkpoint");
      },
    },
  });
  if (hasStore) {
    const blobs = manager.bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    await world.run(blobs.list());
  }
  const { agent } = world.agent({ agent: "agent:w" });
  const jobs: Started[] = [];
  const errors: HarmovelaError[] = [];
  const worker = await world.run(
    agent.worker(
      { concurrency: 1, onError: (error) => errors.push(error), ...rest },
      (job, ctx) =>
        new Promise<JsonValue | undefined>((resolve, reject) => {
          jobs.push({ job, ctx, end: resolve, fail: reject });
          if (heeds) ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
        }),
    ),
  );
  return { tasks, manager, agent, worker, errors, jobs, registry };
}

const offer = (tasks: Peer, more: Partial<Envelope> = {}): Promise<string> =>
  tasks.append({
    id: "offer",
    type: "delegation.requested",
    source: "agent:p",
    target: "agent:w",
    task_id: "t",
    parent_task_id: "p",
    delegated_by: "agent:p",
    delegated_to: "agent:w",
    payload: { work_description: "do t" },
    ...more,
  });

/** What the task `t` is, taken by another process long ago. */
const takenBefore = (tasks: Peer): Promise<string> =>
  offer(tasks, { target: "agent:x", delegated_to: "agent:x" });

type Policy = NonNullable<Envelope["interruption_policy"]>;

const interrupt = (
  manager: Peer,
  id: string,
  interruption_policy: Policy = "save_and_stop",
  more: Partial<Envelope> = {},
): Promise<string> =>
  manager.append({
    id,
    type: "interruption.requested",
    source: "agent:p",
    task_id: "t",
    interruption_policy,
    payload: { reason: "making room" },
    ...more,
  });

const resumed = (
  manager: Peer,
  id: string,
  checkpoint_id: string,
  more: Partial<Envelope> = {},
): Promise<string> =>
  manager.append({
    id,
    type: "interruption.resumed",
    source: "agent:p",
    task_id: "t",
    checkpoint_id,
    payload: {},
    ...more,
  });

/** A job that has begun. */
async function begun(world: World, options: Options = {}): Promise<Setting & { first: Started }> {
  const made = await setting(world, options);
  await world.run(offer(made.tasks));
  await world.pass(100);
  const [first] = made.jobs;
  assert.ok(first);
  return { ...made, first };
}

function storeIn(blobs: Blobs, tenant: string): CheckpointStore {
  return new CheckpointStore(new BucketShelf(blobs, tenant), tenant);
}

describe("a job that is interrupted", () => {
  it("is acknowledged, stopped and saved from the start when its code knows nothing of it", async () => {
    await using world = new World();
    const { tasks, manager, worker, first, errors } = await begun(world);
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    assert.equal(first.ctx.signal.aborted, true);
    assert.ok(isCode("interrupted")(first.ctx.signal.reason));
    const [acknowledged, saved, ...rest] = sent(manager);
    assert.deepEqual(rest, []);
    for (const answer of [acknowledged, saved]) {
      assert.equal(answer?.causation_id, "i1");
      assert.equal(answer?.session_id, worker.sessionId);
    }
    assert.equal(acknowledged?.type, "interruption.acknowledged");
    assert.equal(saved?.type, "interruption.saved");
    assert.match(saved?.checkpoint_id ?? "", /^ckpt_/);
    assert.equal(payloadOf(saved).bytes_saved, 0);
    assert.equal(payloadOf(saved).location, undefined);
    // Nothing ended, nothing failed, and there is room for something else.
    assert.deepEqual(typesOf(tasks), ["delegation.accepted", "task.started"]);
    assert.equal(worker.running, 0);
    assert.deepEqual(errors, []);
  });

  it("is saved with the newest of its checkpoints, and the others are not kept", async () => {
    await using world = new World();
    const { manager, first } = await begun(world);
    const one = await world.run(first.ctx.checkpoint({ step: 1 }));
    const two = await world.run(first.ctx.checkpoint({ step: 2 }));
    assert.notEqual(one, two);
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    const [saved] = sent(manager, "interruption.saved");
    assert.equal(saved?.checkpoint_id, two);
    const blobs = manager.bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const [kept, ...rest] = await world.run(blobs.list());
    assert.deepEqual(rest, []);
    assert.equal(payloadOf(saved).location, `hv-checkpoint:${kept?.name}`);
    assert.equal(payloadOf(saved).digest, kept?.notes.digest);
    assert.match(String(kept?.notes.digest), /^sha-256:[0-9a-f]{64}$/);
  });

  it("may save in its last moment: the signal waits for what it was told of", async () => {
    await using world = new World();
    const { manager, first } = await begun(world);
    let goOn: () => void = () => {};
    const told: string[] = [];
    first.ctx.onInterrupt(async ({ policy, reason, by }) => {
      told.push(`${policy} ${reason} ${by}`);
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      await first.ctx.checkpoint("the last moment");
    });
    await world.run(interrupt(manager, "i1"));
    await world.pass(1_000);
    assert.deepEqual(told, ["save_and_stop making room agent:p"]);
    assert.equal(first.ctx.signal.aborted, false);
    goOn();
    await world.pass(100);
    assert.equal(first.ctx.signal.aborted, true);
    const bytes = Number(payloadOf(sent(manager, "interruption.saved")[0]).bytes_saved);
    assert.equal(bytes, JSON.stringify("the last moment").length);
  });

  it("stops all the same when what it was told of throws", async () => {
    await using world = new World();
    const { manager, first, errors } = await begun(world);
    first.ctx.onInterrupt(() => {
      throw new HarmovelaError("tool_error", "cannot");
    });
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    assert.equal(sent(manager, "interruption.saved").length, 1);
    assert.deepEqual(
      errors.map(({ code }) => code),
      ["tool_error"],
    );
  });

  it("is not answered before its function has stopped", async () => {
    await using world = new World();
    const { manager, first } = await begun(world, { heeds: false });
    await world.run(interrupt(manager, "i1"));
    await world.pass(60_000);
    assert.deepEqual(typesOf(manager), ["interruption.acknowledged"]);
    first.fail(new Error("whatever the abort has led to"));
    await world.pass(100);
    assert.deepEqual(typesOf(manager), ["interruption.acknowledged", "interruption.saved"]);
  });

  it("that returns nothing after its signal has stopped and is not done; with a result it is done", async () => {
    for (const [value, ends] of [
      [undefined, ["interruption.acknowledged", "interruption.saved"]],
      ["done", ["interruption.acknowledged"]],
    ] as const) {
      await using world = new World();
      const { tasks, manager, first } = await begun(world, { heeds: false });
      await world.run(interrupt(manager, "i1"));
      await world.pass(100);
      first.end(value);
      await world.pass(100);
      assert.deepEqual(typesOf(manager), ends);
      assert.equal(sent(tasks, "task.completed").length, value === undefined ? 0 : 1);
    }
  });

  it("drains until its next checkpoint, or until it is done", async () => {
    await using world = new World();
    const { tasks, manager, first } = await begun(world);
    await world.run(interrupt(manager, "i1", "drain_then_stop"));
    await world.pass(1_000);
    assert.equal(first.ctx.signal.aborted, false);
    const id = await world.run(first.ctx.checkpoint("a unit is done"));
    await world.pass(100);
    assert.equal(first.ctx.signal.aborted, true);
    assert.equal(sent(manager, "interruption.saved")[0]?.checkpoint_id, id);
    assert.equal(sent(tasks, "task.completed").length, 0);

    await using other = new World();
    const quick = await begun(other);
    await other.run(interrupt(quick.manager, "i1", "drain_then_stop"));
    await other.pass(1_000);
    quick.first.end();
    await other.pass(100);
    assert.equal(sent(quick.tasks, "task.completed").length, 1);
    assert.equal(sent(quick.manager, "interruption.saved").length, 0);
  });

  it("fails by a failure of its own while it drains", async () => {
    await using world = new World();
    const { tasks, manager, first } = await begun(world);
    await world.run(interrupt(manager, "i1", "drain_then_stop"));
    await world.pass(100);
    first.fail(new HarmovelaError("tool_error", "broken"));
    await world.pass(100);
    assert.equal(sent(tasks, "task.failed").length, 1);
    assert.equal(sent(manager, "interruption.saved").length, 0);
  });

  it("answers the stronger request that took the place of a weaker one", async () => {
    await using world = new World();
    const { manager, first } = await begun(world);
    await world.run(interrupt(manager, "weak", "drain_then_stop"));
    await world.pass(100);
    await world.run(interrupt(manager, "strong", "force_stop"));
    await world.pass(100);
    assert.equal(first.ctx.signal.aborted, true);
    const answers = sent(manager).map(({ type, causation_id: to }) => `${type} ${to}`);
    assert.deepEqual(answers, [
      "interruption.acknowledged weak",
      "interruption.acknowledged strong",
      "interruption.saved strong",
    ]);
  });

  it("answers again when the service names the request that took the place of this one", async () => {
    await using world = new World();
    const superseded = { superseded_by: "newer" };
    const { manager } = await begun(world, {
      judge: ({ envelope: { type, causation_id: to } }) =>
        type.startsWith("interruption.") && to === "older"
          ? { code: "task_error", message: "older", retryable: false, details: superseded }
          : "accept",
    });
    await world.run(interrupt(manager, "older"));
    await world.pass(100);
    const answers = sent(manager).map(({ type, causation_id: to }) => `${type} ${to}`);
    assert.deepEqual(answers.slice(-2), [
      "interruption.acknowledged newer",
      "interruption.saved newer",
    ]);
  });

  it("that does not stop by force gives its slot up, and what it had saved counts", async () => {
    await using world = new World();
    const { manager, worker, first, errors } = await begun(world, { heeds: false });
    const id = await world.run(first.ctx.checkpoint([1]));
    await world.run(interrupt(manager, "i1", "force_stop"));
    await world.pass(3_000);
    assert.equal(worker.running, 0);
    assert.equal(sent(manager, "interruption.saved")[0]?.checkpoint_id, id);
    assert.deepEqual(
      errors.map(({ code }) => code),
      ["task_cancelled"],
    );
    await assert.rejects(world.run(first.ctx.checkpoint([2])), isCode("closed"));
  });

  it("whose grace has passed is dropped without a word when its task fails", async () => {
    await using world = new World();
    const { tasks, manager, worker, first } = await begun(world, { heeds: false });
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    const expired = { source: "service:m", causation_id: "i1", payload: { expired: true } };
    await world.run(interrupt(manager, "i2", "force_stop", expired));
    const error = { code: "interruption_timeout", message: "late", retryable: true };
    await world.run(tasks.append({ type: "task.failed", task_id: "t", payload: { error } }));
    await world.pass(3_000);
    assert.equal(worker.running, 0);
    assert.deepEqual(typesOf(manager), ["interruption.acknowledged"]);
    first.end("too late");
    await world.pass(100);
    assert.deepEqual(typesOf(tasks), ["delegation.accepted", "task.started"]);
  });

  it("ends as cancelled when a cancellation is asked for meanwhile", async () => {
    await using world = new World();
    const { tasks, manager, first } = await begun(world, { heeds: false });
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    await world.run(
      tasks.append({ type: "task.cancel.requested", task_id: "t", source: "agent:p" }),
    );
    await world.pass(100);
    first.fail(first.ctx.signal.reason);
    await world.pass(100);
    assert.equal(sent(tasks, "task.cancelled").length, 1);
    assert.equal(sent(manager, "interruption.saved").length, 0);
  });

  it("is stopped by a request that came before the work did", async () => {
    await using world = new World();
    const { tasks, manager, jobs } = await setting(world);
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    await world.run(offer(tasks));
    await world.pass(100);
    assert.deepEqual(typesOf(manager), ["interruption.acknowledged", "interruption.saved"]);
    assert.deepEqual(jobs, []);
  });
});

describe("a checkpoint", () => {
  it("exists when it is stored, and not before", async () => {
    await using world = new World();
    const { manager, first } = await begun(world, { hasStore: false });
    await assert.rejects(world.run(first.ctx.checkpoint({ step: 1 })), isCode("no_service"));
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    const [saved] = sent(manager, "interruption.saved");
    // What could not be stored is not announced.
    assert.equal(payloadOf(saved).bytes_saved, 0);
  });

  it("has at most 8 MiB, and is bytes or JSON", async () => {
    await using world = new World();
    const { first } = await begun(world);
    await assert.rejects(
      world.run(first.ctx.checkpoint(new Uint8Array(CHECKPOINT_BYTES_MAX + 1))),
      isCode("checkpoint_too_large"),
    );
    await world.run(first.ctx.checkpoint(new Uint8Array(CHECKPOINT_BYTES_MAX)));
    const nothing = undefined as unknown as JsonValue;
    await assert.rejects(world.run(first.ctx.checkpoint(nothing)), isCode("invalid_argument"));
  });

  it("may be a place of the agent's own, which is told and never opened", async () => {
    await using world = new World();
    const { manager, first } = await begun(world);
    await assert.rejects(
      world.run(first.ctx.checkpointAt({ location: "hv-checkpoint:default.x.y" })),
      isCode("invalid_argument"),
    );
    const id = await world.run(first.ctx.checkpointAt({ location: "s3://bucket/key", bytes: 7 }));
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    const [saved] = sent(manager, "interruption.saved");
    assert.equal(saved?.checkpoint_id, id);
    assert.equal(payloadOf(saved).location, "s3://bucket/key");
  });

  it("is opened only by its own name, and only when it is what was registered", async () => {
    await using world = new World();
    const bus = world.server.connect({ name: "s" });
    const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const store = storeIn(blobs, "acme");
    const made = await world.run(store.put("a.b %/c", { x: 1 }));
    assert.equal(new TextDecoder().decode(await world.run(store.open(made))), '{"x":1}');
    const missing = isCode("checkpoint_missing");
    for (const wrong of [
      { ...made, digest: `sha-256:${"0".repeat(64)}` },
      { ...made, taskId: "other" },
      { ...made, location: "s3://bucket/key" },
      { checkpointId: made.checkpointId, taskId: made.taskId, at: made.at },
    ]) {
      await assert.rejects(world.run(store.open(wrong)), missing);
    }
    const stranger = storeIn(blobs, "evil");
    await assert.rejects(world.run(stranger.open(made)), missing);
    await world.run(stranger.remove(made));
    assert.deepEqual(await world.run(store.newest("a.b %/c")), made);
    await world.run(store.remove(made));
    await assert.rejects(world.run(store.open(made)), missing);
    assert.equal(await world.run(store.newest("a.b %/c")), undefined);
  });

  it("is gone when the job has ended", async () => {
    await using world = new World();
    const { manager, first } = await begun(world);
    await world.run(first.ctx.checkpoint({ step: 1 }));
    first.end("done");
    await world.pass(100);
    const blobs = manager.bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    assert.deepEqual(await world.run(blobs.list()), []);
  });
});

describe("a task that goes on", () => {
  const begins = { checkpoint_id: "c1", task_id: "t", at: "2026-11-30T10:00:00Z", bytes: 0 };

  it("is taken up by a process with room, which knows where to go on", async () => {
    await using world = new World();
    const { tasks, manager, jobs, registry, worker } = await setting(world);
    await world.run(tasks.append({ id: "x", type: "task.submitted", task_id: "x" }));
    await world.run(offer(tasks));
    await world.pass(100);
    const id = await world.run(jobs[0]?.ctx.checkpoint({ step: 7 }) ?? Promise.reject());
    await world.run(interrupt(manager, "i1"));
    await world.pass(100);
    await world.run(resumed(manager, "r1", id));
    await world.pass(100);
    const again = jobs[1];
    assert.ok(again);
    assert.equal(again.job.description, "do t");
    assert.equal(again.job.delegatedBy, "agent:p");
    assert.equal(again.ctx.resumedFrom?.checkpointId, id);
    assert.deepEqual(await world.run(again.ctx.resumedFrom.json()), { step: 7 });
    const claim = sent(tasks, "task.progress").at(-1);
    assert.equal(claim?.causation_id, "r1");
    assert.equal(claim?.session_id, worker.sessionId);
    // Stopped again before it has saved anything new, it is saved where it began.
    await world.run(interrupt(manager, "i2"));
    await world.pass(100);
    const saved = sent(manager, "interruption.saved").at(-1);
    assert.equal(saved?.causation_id, "i2");
    assert.equal(saved?.checkpoint_id, id);
    const { checkpoint_at } = sent(manager, "interruption.saved")[0] ?? {};
    assert.equal(saved?.checkpoint_at, checkpoint_at);
    assert.equal(registry.size, 1);
  });

  it("is left to the process that was faster", async () => {
    await using world = new World();
    const error = { code: "unauthorized", message: "in another session", retryable: false };
    const { tasks, manager, jobs, registry, errors } = await setting(world, {
      judge: ({ envelope: { type } }) => (type === "task.progress" ? error : "accept"),
    });
    registry.set("c1", begins);
    await world.run(takenBefore(tasks));
    await world.run(resumed(manager, "r1", "c1"));
    await world.pass(5_000);
    assert.equal(sent(tasks, "task.progress").length, 1);
    assert.deepEqual(jobs, []);
    assert.deepEqual(errors, []);
  });

  it("is nothing for this process when another one resumed it, or when it is not its agent's", async () => {
    for (const [more, view] of [
      [{ source: "agent:w", session_id: "sess_of_another" }, {}],
      [{}, { owner: "agent:other" }],
      [{}, { owner: "agent:w", worker: "agent:other" }],
      [{}, { state: "completed" }],
    ] as const) {
      await using world = new World();
      const { tasks, manager, jobs, registry } = await setting(world, { view });
      registry.set("c1", begins);
      await world.run(takenBefore(tasks));
      await world.run(resumed(manager, "r1", "c1", more));
      await world.pass(1_000);
      assert.deepEqual(jobs, [], JSON.stringify([more, view]));
      assert.equal(sent(tasks, "task.progress").length, 0);
    }
  });

  it("is found by a process that comes later, while nobody has taken it up", async () => {
    for (const isFree of [true, false]) {
      await using world = new World();
      const { tasks, jobs, registry } = await setting(world, {
        hasRequest: true,
        listed: [{ task_id: "t", ...(isFree ? { is_free: true } : {}) }],
        closed: {
          by: "agent:p",
          type: "interruption.resumed",
          event_id: "r1",
          checkpoint_id: "c1",
        },
        registered: begins,
      });
      await world.pass(1_000);
      assert.equal(jobs.length, isFree ? 1 : 0);
      assert.equal(sent(tasks, "task.progress").length, isFree ? 1 : 0);
      assert.equal(registry.size, 1);
    }
  });

  it("waits for room, and goes before new work", async () => {
    await using world = new World();
    const { tasks, manager, jobs, registry } = await setting(world, { patienceMs: 60_000 });
    registry.set("c1", begins);
    await world.run(takenBefore(tasks));
    await world.run(offer(tasks, { id: "busy", task_id: "busy" }));
    await world.pass(100);
    await world.run(offer(tasks, { id: "new", task_id: "new" }));
    await world.run(resumed(manager, "r1", "c1"));
    await world.pass(1_000);
    assert.equal(jobs.length, 1);
    jobs[0]?.end("done");
    await world.pass(100);
    assert.equal(jobs.length, 2);
    assert.equal(jobs[1]?.ctx.resumedFrom?.checkpointId, "c1");
    assert.equal(await world.run(jobs[1]?.ctx.resumedFrom?.json() ?? Promise.reject()), undefined);
  });

  it("starts what had only been accepted", async () => {
    await using world = new World();
    const { tasks, manager, registry } = await setting(world, { view: { state: "accepted" } });
    registry.set("c1", begins);
    await world.run(takenBefore(tasks));
    await world.run(resumed(manager, "r1", "c1"));
    await world.pass(100);
    assert.deepEqual(typesOf(tasks), ["task.started"]);
  });

  it("is resumed in this process by the process itself", async () => {
    await using world = new World();
    const { manager, worker, registry } = await setting(world);
    registry.set("c1", begins);
    await world.run(worker.resume("t"));
    const [said] = sent(manager, "interruption.resumed");
    assert.equal(said?.session_id, worker.sessionId);
    assert.equal(said?.checkpoint_id, "c1");
  });

  it("cannot go on from nothing", async () => {
    await using world = new World();
    const { agent } = await setting(world);
    await assert.rejects(world.run(agent.interruptions.resume("t")), isCode("checkpoint_missing"));
  });
});

describe("what a process left behind", () => {
  it("is saved by another process of its agent, with what had been stored last", async () => {
    await using world = new World();
    const { manager } = await setting(world);
    const blobs = manager.bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const store = storeIn(blobs, "default");
    await world.run(store.put("t", "first"));
    const last = await world.run(store.put("t", "second"));
    await world.run(store.put("other", "third"));
    const ended = { source: "service:m", target: "agent:w", payload: { ended_session_id: "gone" } };
    await world.run(interrupt(manager, "i1", "save_and_stop", ended));
    await world.pass(100);
    assert.deepEqual(typesOf(manager), ["interruption.acknowledged", "interruption.saved"]);
    assert.equal(sent(manager, "interruption.saved")[0]?.checkpoint_id, last.checkpointId);
  });

  it("is left alone when it is another agent's, in a session, or interrupted for another reason", async () => {
    const ended = { source: "service:m", target: "agent:w", payload: { ended_session_id: "gone" } };
    for (const [more, view] of [
      [{ ...ended, target: "agent:other" }, {}],
      [ended, { session_id: "sess_live" }],
      [ended, { owner: "agent:other" }],
      [ended, { state: "failed" }],
      [{ ...ended, payload: {} }, {}],
      [{ ...ended, source: "agent:evil" }, {}],
    ] as const) {
      await using world = new World();
      const { manager } = await setting(world, { view });
      await world.run(interrupt(manager, "i1", "save_and_stop", more));
      await world.pass(1_000);
      assert.deepEqual(typesOf(manager), [], JSON.stringify([more, view]));
    }
  });
});

describe("who interrupts", () => {
  it("hears when it is saved, under a stronger request too", async () => {
    await using world = new World();
    const { manager, agent } = await setting(world);
    const handle = await world.run(
      agent.interruptions.request("t", { policy: "drain_then_stop", graceMs: 0, scope: "tree" }),
    );
    const [asked] = sent(manager, "interruption.requested");
    assert.equal(asked?.interruption_policy, "drain_then_stop");
    assert.deepEqual(payloadOf(asked), { task_id: "t", grace_period_ms: 0, scope: "tree" });
    assert.equal(handle.verdict?.id, asked?.id);
    await world.run(interrupt(manager, "stronger", "force_stop"));
    const saved = { type: "interruption.saved", source: "agent:x", task_id: "t", payload: {} };
    await world.run(manager.append({ ...saved, checkpoint_id: "c9" }));
    const { checkpointId, by } = await world.run(handle.saved);
    assert.deepEqual([checkpointId, by], ["c9", "agent:x"]);
  });

  it("hears that nothing was saved in time, or that it was over before", async () => {
    await using world = new World();
    const { manager, agent } = await setting(world);
    // What was before it is not its own.
    await world.run(resumed(manager, "r0", "c0"));
    const late = await world.run(agent.interruptions.request("t"));
    const expired = { source: "service:m", causation_id: late.id, payload: { expired: true } };
    await world.run(interrupt(manager, "e1", "force_stop", expired));
    await assert.rejects(world.run(late.saved), isCode("interruption_timeout"));
    const over = await world.run(agent.interruptions.request("t"));
    const ended = {
      type: "interruption.cancelled",
      source: "service:m",
      task_id: "t",
      payload: {},
    };
    await world.run(manager.append(ended));
    await assert.rejects(world.run(over.saved), isCode("task_error"));
  });

  it("asks for compensation and says that it is done", async () => {
    await using world = new World();
    const { manager, agent } = await setting(world);
    const deadline = new Date("2030-01-01T00:00:00Z");
    const options = { reason: "storm", description: "cancel it", target: "agent:h", deadline };
    const undoing = await world.run(agent.compensate("t", options));
    await world.run(agent.compensated(undoing.id, "t"));
    const [asked, done] = sent(manager);
    assert.equal(asked?.type, "compensation.requested");
    assert.equal(asked?.compensation_id, "t");
    assert.equal(asked?.task_id, undoing.id);
    assert.equal(asked?.target, "agent:h");
    assert.deepEqual(payloadOf(asked), {
      task_id: undoing.id,
      original_task: "t",
      reason: "storm",
      description: "cancel it",
      deadline: "2030-01-01T00:00:00.000Z",
    });
    assert.equal(done?.type, "compensation.completed");
    assert.equal(done?.compensation_id, "t");
  });
});
