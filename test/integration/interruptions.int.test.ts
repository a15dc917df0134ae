/** Work that is stopped and goes on: agents in processes of their own, the real services, a real server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CHECKPOINT_BUCKET, connectBus, type JetStreamBus } from "@harmovela/bus";
import {
  type Agent,
  CHECKPOINT_BYTES_MAX,
  connect,
  type DelegationHandle,
  type Job,
  type JobContext,
  type JobFunction,
  RejectedError,
  type Worker,
  type WorkerOptions,
} from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Envelope } from "@harmovela/envelope";
import type { HarmovelaError, JsonObject, JsonValue } from "@harmovela/failure";
import {
  generateTokenKeys,
  openService,
  openTokenKeys,
  type RunningService,
} from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { cli } from "./cli-process.ts";
import { isCode, run, type Spawned, within } from "./worker-support.ts";

type CoordinatorSettings = NonNullable<Parameters<typeof createCoordinator>[0]>;
type ManagerSettings = NonNullable<Parameters<typeof createManager>[0]>;
type StoreOptions = NonNullable<Parameters<typeof createManager>[1]>;

/** A server with both services, and a planner. */
class Ground implements AsyncDisposable {
  readonly server: NatsServer;
  readonly planner: Agent;
  readonly bus: JetStreamBus;
  readonly folder: string;
  readonly #services: RunningService[];
  readonly #agents: Agent[] = [];
  readonly #processes: Spawned[] = [];

  constructor(
    server: NatsServer,
    services: RunningService[],
    { planner, bus }: { planner: Agent; bus: JetStreamBus },
  ) {
    this.server = server;
    this.#services = services;
    this.planner = planner;
    this.bus = bus;
    this.folder = mkdtempSync(join(tmpdir(), "harmovela-steps-"));
  }

  static async open(
    settings: CoordinatorSettings & ManagerSettings = {},
    store: StoreOptions = {},
  ): Promise<Ground> {
    const server = await startNatsServer();
    const config = {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
      tokens: await openTokenKeys(await generateTokenKeys()),
    };
    const { service: _service, ...both } = settings;
    const services = [
      await openService(createCoordinator(both), config),
      await openService(createManager(both, store), config),
    ];
    for (const { host } of services) await host.untilLeading();
    const planner = await connect({ servers: server.url, agent: "agent:planner" });
    const bus = await connectBus({ servers: server.url, name: "test" });
    const ground = new Ground(server, services, { planner, bus });
    await ground.untilStore();
    return ground;
  }

  /** The manager makes the store of checkpoints when it starts. */
  async untilStore(): Promise<void> {
    const deadline = performance.now() + 30_000;
    while (!(await this.bus.streamState(`OBJ_${CHECKPOINT_BUCKET}`))) {
      assert.ok(performance.now() < deadline, "there is no store of checkpoints");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async agent(name: string): Promise<Agent> {
    const agent = await connect({ servers: this.server.url, agent: name });
    this.#agents.push(agent);
    return agent;
  }

  /** A worker in this process. */
  async worker(
    name: string,
    work: JobFunction,
    options: Partial<WorkerOptions> = {},
  ): Promise<Worker> {
    const agent = await this.agent(name);
    return await agent.worker({ concurrency: 1, ...options }, work);
  }

  /** A worker in a process of its own, ready for work. */
  async process(name: string, options: JsonObject = {}): Promise<Spawned> {
    const started = run("packages/client/test/stepping-process.ts", {
      HARMOVELA_SERVERS: this.server.url,
      WORKER_NAME: name,
      WORKER_OPTIONS: JSON.stringify(options),
    });
    this.#processes.push(started);
    await within(started.says(/ready (\S+)/));
    return started;
  }

  async give(name: string, context: JsonObject = {}): Promise<DelegationHandle> {
    const parent = await this.planner.submit({ target: this.planner.name });
    await parent.start();
    return await this.planner.delegate(name, { context }, { parent: parent.id });
  }

  /** Everything about interruptions and the task, as logged; fails when it does not come. */
  async until(taskId: string, type: string, from: "start" | "now" = "start"): Promise<Envelope> {
    await using all = this.planner.subscribe({ from, task_id: taskId, types: type });
    const { value } = await within(all.next());
    assert.ok(value);
    return value.envelope;
  }

  /** The types of what was logged about a task in a domain, in order. */
  async logged(domain: "tasks" | "interruptions", taskId: string): Promise<Envelope[]> {
    const found: Envelope[] = [];
    const stream = `HV_LOG_${domain.toUpperCase()}`;
    const last = (await this.bus.streamState(stream))?.lastSeq ?? 0;
    for (let seq = 1; seq <= last; seq++) {
      const message = await this.bus.read(stream, seq);
      if (!message?.subject.includes(".log.")) continue;
      const envelope = JSON.parse(new TextDecoder().decode(message.data)) as Envelope;
      if (envelope.task_id === taskId) found.push(envelope);
    }
    return found;
  }

  get files(): string[] {
    return readdirSync(this.folder).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, exit } of this.#processes) {
      child.kill("SIGKILL");
      await exit;
    }
    for (const agent of [...this.#agents, this.planner]) await agent.close();
    await this.bus.close();
    for (const service of this.#services) await service.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A function that does nothing but wait until it is told to stop; what it was given stands in `seen`. */
function waiting(seen: JobContext[] = []) {
  return async (_job: Job, ctx: JobContext): Promise<JsonValue> => {
    seen.push(ctx);
    await ctx.progress({ message: "waiting" });
    if (ctx.resumedFrom) return { from: (await ctx.resumedFrom.json()) ?? "the start" };
    if (!ctx.signal.aborted) await once(ctx.signal, "abort");
    throw ctx.signal.reason;
  };
}

const typesOf = (envelopes: readonly Envelope[]): string[] => envelopes.map(({ type }) => type);

async function taken(handle: DelegationHandle): Promise<void> {
  for await (const { envelope } of handle.events()) if (envelope.type === "task.progress") return;
}

describe("work that is stopped", () => {
  let ground: Ground;
  before(async () => {
    ground = await Ground.open();
  });
  after(() => ground[Symbol.asyncDispose]());

  test("stops, is saved and goes on with no code for it", async () => {
    const { planner } = ground;
    const worker = await ground.worker("agent:plain", waiting());
    const handle = await ground.give("agent:plain");
    await within(taken(handle));
    const interruption = await planner.interruptions.request(handle.taskId, { reason: "room" });
    const saved = await within(interruption.saved);
    assert.equal(saved.by, "agent:plain");
    const [kept, ...rest] = await planner.interruptions.checkpoints(handle.taskId);
    assert.deepEqual(rest, []);
    assert.equal(kept?.checkpointId, saved.checkpointId);
    assert.equal(kept?.bytes, 0);
    assert.equal((await planner.interruptions.get(handle.taskId))?.state, "saved");
    // Stopped: whatever is said about the work is refused, and its parent stays open.
    const words = worker.running === 0 ? planner.handle(handle.taskId) : undefined;
    await assert.rejects(words?.progress() ?? Promise.reject(), RejectedError);
    await planner.interruptions.resume(handle.taskId);
    assert.deepEqual(await within(handle.result()), { from: "the start" });
    assert.equal(await planner.interruptions.get(handle.taskId), undefined);
    await worker.close();
  });

  test("of a function that does not stop fails when the grace has passed, and its slot is free", async () => {
    const { planner } = ground;
    const errors: HarmovelaError[] = [];
    let release: () => void = () => {};
    const deaf = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await ground.worker(
      "agent:deaf",
      async ({ context }, ctx) => {
        await ctx.progress();
        if (context.deaf === true) await deaf;
        return "done";
      },
      { onError: (error) => errors.push(error) },
    );
    const handle = await ground.give("agent:deaf", { deaf: true });
    await within(taken(handle));
    const interruption = await planner.interruptions.request(handle.taskId, { graceMs: 300 });
    await assert.rejects(within(interruption.saved), isCode("interruption_timeout"));
    await assert.rejects(within(handle.result()), isCode("interruption_timeout"));
    const next = await ground.give("agent:deaf");
    assert.equal(await within(next.result()), "done");
    assert.deepEqual(
      errors.map(({ code }) => code),
      ["task_cancelled"],
    );
    const types = typesOf(await ground.logged("interruptions", handle.taskId));
    assert.ok(!types.includes("interruption.saved"), types.join());
    release();
    await worker.close();
  });

  test("drains: the unit under way is finished, and saved with it", async () => {
    const { planner } = ground;
    const units: number[] = [];
    let goOn: () => void = () => {};
    const unit = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const worker = await ground.worker("agent:drainer", async (_job, ctx) => {
      const from = Number((await ctx.resumedFrom?.json()) ?? 0);
      for (let done = from; done < 4; done++) {
        ctx.signal.throwIfAborted();
        if (done === 1 && from === 0) {
          await ctx.progress({ message: "in the middle of a unit" });
          await unit;
        }
        units.push(done);
        await ctx.checkpoint(done + 1);
      }
      return units;
    });
    const handle = await ground.give("agent:drainer");
    await within(taken(handle));
    const interruption = await planner.interruptions.request(handle.taskId, {
      policy: "drain_then_stop",
    });
    await ground.until(handle.taskId, "interruption.acknowledged");
    assert.deepEqual(units, [0]);
    goOn();
    await within(interruption.saved);
    assert.deepEqual(units, [0, 1]);
    await planner.interruptions.resume(handle.taskId);
    assert.deepEqual(await within(handle.result()), [0, 1, 2, 3]);
    await worker.close();
  });

  test("by force is stopped at once, and what its process still says is refused", async () => {
    const { planner } = ground;
    let said: unknown;
    let speak: () => void = () => {};
    const told = new Promise<void>((resolve) => {
      speak = resolve;
    });
    const worker = await ground.worker("agent:forced", async (_job, ctx) => {
      if (ctx.resumedFrom) return (await ctx.resumedFrom.json()) ?? null;
      await ctx.checkpoint("before");
      await ctx.progress();
      await told;
      said = await ctx.progress({ message: "still here" }).catch((error: unknown) => error);
      throw said;
    });
    const handle = await ground.give("agent:forced");
    await within(taken(handle));
    const { saved } = await planner.interruptions.request(handle.taskId, { policy: "force_stop" });
    speak();
    await within(saved);
    assert.ok(said instanceof RejectedError && said.code === "task_error");
    assert.equal(said.details?.state, "force_stop");
    await planner.interruptions.resume(handle.taskId);
    assert.equal(await within(handle.result()), "before");
    await worker.close();
  });

  test("goes on in another process from what is stored alone, each step done once", async () => {
    const { planner, folder } = ground;
    const first = await ground.process("agent:stepper");
    const handle = await ground.give("agent:stepper", { steps: 6, holdAt: 3, folder });
    await within(taken(handle));
    const interruption = await planner.interruptions.request(handle.taskId);
    await within(interruption.saved);
    first.child.kill("SIGKILL");
    await first.exit;
    assert.equal(ground.files.length, 3);
    // Resumed while there is no process: the one that comes finds it.
    await planner.interruptions.resume(handle.taskId);
    const second = await ground.process("agent:stepper");
    assert.deepEqual(await within(handle.result()), { steps: 6, from: 3 });
    assert.match(second.printed(), /resumes \S+ at 3/);
    assert.equal(ground.files.length, 6);
  });

  test("is taken up by one of several processes of its agent", async () => {
    const { planner } = ground;
    const begun: string[] = [];
    const work =
      (who: string): JobFunction =>
      async (_job, ctx) => {
        begun.push(`${who} ${ctx.resumedFrom ? "resumes" : "begins"}`);
        await ctx.progress();
        if (ctx.resumedFrom) return who;
        if (!ctx.signal.aborted) await once(ctx.signal, "abort");
        throw ctx.signal.reason;
      };
    const workers = [
      await ground.worker("agent:twins", work("a")),
      await ground.worker("agent:twins", work("b")),
      await ground.worker("agent:twins", work("c")),
    ];
    for (let round = 0; round < 5; round++) {
      begun.length = 0;
      const handle = await ground.give("agent:twins");
      await within(taken(handle));
      await within((await planner.interruptions.request(handle.taskId)).saved);
      await planner.interruptions.resume(handle.taskId);
      await within(handle.result());
      assert.equal(begun.filter((line) => line.endsWith("resumes")).length, 1, begun.join());
    }
    for (const worker of workers) await worker.close();
  });

  test("goes on in the very process that resumes it, and there only", async () => {
    const { planner } = ground;
    const seen: string[] = [];
    const work =
      (who: string): JobFunction =>
      async (job, ctx) => {
        seen.push(who);
        return await waiting()(job, ctx);
      };
    const workers = {
      a: await ground.worker("agent:own", work("a")),
      b: await ground.worker("agent:own", work("b")),
    };
    const handle = await ground.give("agent:own");
    await within(taken(handle));
    await within((await planner.interruptions.request(handle.taskId)).saved);
    const other = seen[0] === "a" ? "b" : "a";
    await workers[other].resume(handle.taskId);
    await within(handle.result());
    assert.deepEqual(seen, [seen[0], other]);
    await workers.a.close();
    await workers.b.close();
  });
});

describe("checkpoints", () => {
  let ground: Ground;
  before(async () => {
    ground = await Ground.open({}, { maxBytes: 32 * 1024 * 1024 });
  });
  after(() => ground[Symbol.asyncDispose]());

  /** A job that is under way, with what it was given. */
  async function underWay(name: string): Promise<{ handle: DelegationHandle; ctx: JobContext }> {
    const seen: JobContext[] = [];
    await ground.worker(name, waiting(seen));
    const handle = await ground.give(name);
    await within(taken(handle));
    const [ctx] = seen;
    assert.ok(ctx);
    return { handle, ctx };
  }

  test("over the limit, and beyond the room of the store, are refused by name", async () => {
    const { ctx } = await underWay("agent:large");
    const code = isCode("checkpoint_too_large");
    await assert.rejects(ctx.checkpoint(new Uint8Array(CHECKPOINT_BYTES_MAX + 1)), code);
    const filler = ground.bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    for (let part = 0; part < 3; part++)
      await filler.put(`filler ${part}`, new Uint8Array(8 * 1024 * 1024));
    await assert.rejects(
      ctx.checkpoint(new Uint8Array(CHECKPOINT_BYTES_MAX)),
      isCode("store_full"),
    );
    // What fits still does, and the one before is let go only then.
    await ctx.checkpoint("small");
    for (let part = 0; part < 3; part++) await filler.remove(`filler ${part}`);
    await ctx.checkpoint(new Uint8Array(CHECKPOINT_BYTES_MAX));
  });

  test("are announced only when they are stored: with the store out of reach the one before counts", async () => {
    const { planner, bus } = ground;
    const { handle, ctx } = await underWay("agent:unstored");
    const before = await ctx.checkpointAt({ location: "s3://bucket/one", bytes: 3 });
    await bus.nats.request(`$JS.API.STREAM.DELETE.OBJ_${CHECKPOINT_BUCKET}`, "", {
      timeout: 5_000,
    });
    const attempts: Promise<unknown>[] = [];
    ctx.onInterrupt(() => {
      const attempt = ctx.checkpoint("the last moment");
      attempts.push(attempt);
      return attempt.catch(() => undefined);
    });
    const { checkpointId } = await within(
      (await planner.interruptions.request(handle.taskId)).saved,
    );
    assert.equal(checkpointId, before);
    await assert.rejects(attempts[0] ?? Promise.resolve(), isCode("no_service"));
    const registered = await planner.interruptions.checkpoints(handle.taskId);
    assert.deepEqual(
      registered.map(({ location }) => location),
      ["s3://bucket/one"],
    );
    await bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 }).list();
  });

  test("that are not what was registered are not gone on from", async () => {
    const { planner, bus } = ground;
    const { handle, ctx } = await underWay("agent:mismatch");
    await ctx.checkpoint({ right: true });
    const { checkpointId } = await within(
      (await planner.interruptions.request(handle.taskId)).saved,
    );
    const [registered] = await planner.interruptions.checkpoints(handle.taskId);
    const name = registered?.location?.replace("hv-checkpoint:", "") ?? "";
    const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    await blobs.put(name, new TextEncoder().encode('{"right":false}'));
    await planner.interruptions.resume(handle.taskId, checkpointId);
    await assert.rejects(within(handle.result()), isCode("checkpoint_missing"));
  });

  test("with another digest than the one that is meant end the task", async () => {
    const { planner } = ground;
    const { handle, ctx } = await underWay("agent:digest");
    await ctx.checkpoint({ right: true });
    const { checkpointId } = await within(
      (await planner.interruptions.request(handle.taskId)).saved,
    );
    const digest = `sha-256:${"0".repeat(64)}`;
    await assert.rejects(
      planner.interruptions.resume(handle.taskId, checkpointId, { digest }),
      isCode("checkpoint_missing"),
    );
    await assert.rejects(within(handle.result()), isCode("checkpoint_missing"));
  });

  test("an unknown one ends the task", async () => {
    const { planner } = ground;
    const { handle } = await underWay("agent:unknown");
    await within((await planner.interruptions.request(handle.taskId)).saved);
    await assert.rejects(
      planner.interruptions.resume(handle.taskId, "nowhere"),
      isCode("checkpoint_missing"),
    );
    await assert.rejects(within(handle.result()), isCode("checkpoint_missing"));
  });
});

describe("a process that is killed", () => {
  let ground: Ground;
  before(async () => {
    ground = await Ground.open({ orphanedTasks: "interrupt" });
  });
  after(() => ground[Symbol.asyncDispose]());

  test("is saved by another one of its agent with what it had stored, and goes on there", async () => {
    const { planner, folder } = ground;
    const first = await ground.process("agent:mortal", { heartbeatMs: 200 });
    const handle = await ground.give("agent:mortal", { steps: 5, holdAt: 2, folder });
    await within(taken(handle));
    const second = await ground.process("agent:mortal", { heartbeatMs: 200 });
    first.child.kill("SIGKILL");
    await first.exit;
    const saved = await ground.until(handle.taskId, "interruption.saved");
    assert.equal(saved.source, "agent:mortal");
    await planner.interruptions.resume(handle.taskId);
    assert.deepEqual(await within(handle.result()), { steps: 5, from: 2 });
    assert.match(second.printed(), /resumes \S+ at 2/);
    assert.equal(ground.files.length, 5);
    const ends = typesOf(await ground.logged("tasks", handle.taskId)).filter((type) =>
      ["task.completed", "task.failed"].includes(type),
    );
    assert.deepEqual(ends, ["task.completed"]);
  });
});

describe("the commands", () => {
  let ground: Ground;
  before(async () => {
    ground = await Ground.open();
  });
  after(() => ground[Symbol.asyncDispose]());

  const harmovela = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli([...args, "--server", ground.server.url]);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  test("interrupt, list, explain, resume and undo", async () => {
    await ground.worker("agent:cli", waiting());
    const handle = await ground.give("agent:cli");
    await within(taken(handle));
    const task = handle.taskId;
    const as = ["--as", "agent:planner"];
    const stopped = await harmovela("interrupt", task, ...as, "--reason", "room", "--wait");
    const [, checkpoint = ""] = /saved as (\S+), by agent:cli/.exec(stopped) ?? [];
    assert.match(checkpoint, /^ckpt_/, stopped);
    const listed = await harmovela("checkpoints", task, ...as);
    assert.match(listed, new RegExp(`^${checkpoint} .*from the start`));
    const [, json = ""] = (await harmovela("checkpoints", task, ...as, "--json")).split("\n");
    assert.equal(json, "");
    const why = await harmovela("why", task);
    assert.match(why, new RegExp(`stopped since .*${checkpoint}`));
    assert.match(why, /waits for interruption\.resumed/);
    assert.match(await harmovela("resume", task, ...as), /^accepted /);
    await within(handle.result());
    const target = await ground.agent("agent:undoer");
    const undone = (async () => {
      for await (const job of target.tasks()) {
        await job.start();
        await job.complete();
        return job.id;
      }
      return "";
    })();
    const undoing = ["--reason", "trip cancelled", "--description", "cancel the hotel"];
    const made = await harmovela(
      ...["compensate", task, ...as, ...undoing, "--target", "agent:undoer", "--wait"],
    );
    const id = await within(undone);
    assert.equal(made, `${id} undoes ${task}\n${id} completed, by agent:undoer\n`);
    assert.match(await harmovela("why", task), new RegExp(`is undone by ${id}`));
  });

  test("say what is wrong", async () => {
    const { code, stderr } = await cli(["interrupt", "none", "--server", ground.server.url]);
    assert.equal(code, 1);
    assert.match(stderr, /task_error/);
    const bad = await cli(["interrupt", "t", "--grace", "-1"]);
    assert.equal(bad.code, 2);
    const worse = await cli(["interrupt", "t", "--policy", "gently"]);
    assert.equal(worse.code, 2);
  });
});

describe("the store", () => {
  test("lets go of what nobody can go on from, and of nothing else", async () => {
    const store = { sweepMs: 100, unknownMs: 0 };
    await using ground = await Ground.open({ retentionMs: 1_000 }, store);
    const { planner, bus } = ground;
    const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const seen: JobContext[] = [];
    await ground.worker("agent:kept", waiting(seen), { concurrency: 2 });
    const stopped = await ground.give("agent:kept");
    await within(taken(stopped));
    await seen[0]?.checkpoint("stopped");
    await within((await planner.interruptions.request(stopped.taskId)).saved);
    const running = await ground.give("agent:kept");
    await within(taken(running));
    await seen[1]?.checkpoint("running");
    await blobs.put("default.unknown_task.ckpt_1", new Uint8Array([1]));
    await blobs.put("no name of a checkpoint", new Uint8Array([1]));
    const names = async (): Promise<string[]> => (await blobs.list()).map(({ name }) => name);
    const untilLeft = async (count: number): Promise<string[]> => {
      const deadline = performance.now() + 30_000;
      for (;;) {
        const left = await names();
        if (left.length === count) return left;
        assert.ok(performance.now() < deadline, left.join());
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    const left = await untilLeft(2);
    assert.ok(left.some((name) => name.includes(stopped.taskId)));
    assert.ok(left.some((name) => name.includes(running.taskId)));
    // Ended, its checkpoint is remembered for the retention, and the bytes as long; entries let time pass.
    await planner.interruptions.cancel(stopped.taskId, { reason: "enough" });
    const beat = setInterval(() => void planner.submit({}).catch(() => undefined), 100);
    try {
      const last = await untilLeft(1);
      assert.ok(last[0]?.includes(running.taskId), last.join());
    } finally {
      clearInterval(beat);
    }
  });
});
