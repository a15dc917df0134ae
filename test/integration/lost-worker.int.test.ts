/** Workers that die with work in their hands, as processes, against a real server and the real coordinator. */
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { connectBus, type JetStreamBus } from "@harmovela/bus";
import {
  type Agent,
  connect,
  type DelegateOptions,
  type DelegationHandle,
} from "@harmovela/client";
import { generateTokenKeys, openTokenKeys, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { assertGreen, readRecords } from "../chaos/stored-log.ts";
import { coordinator, isCode, runWorker, type SpawnedWorker, within } from "./worker-support.ts";

const HEARTBEAT_MS = 250;

/** What both settings have in common: a planner, workers to kill, and at the end a log that keeps every rule. */
class Stage {
  readonly spawned: SpawnedWorker[] = [];
  readonly server: NatsServer;
  readonly service: RunningService;
  readonly planner: Agent;
  readonly bus: JetStreamBus;

  private constructor(
    server: NatsServer,
    service: RunningService,
    planner: Agent,
    bus: JetStreamBus,
  ) {
    this.server = server;
    this.service = service;
    this.planner = planner;
    this.bus = bus;
  }

  static async open(settings: Parameters<typeof coordinator>[1]): Promise<Stage> {
    const server = await startNatsServer();
    const keys = await openTokenKeys(await generateTokenKeys());
    const service = await coordinator(server, settings, keys);
    const planner = await connect({ servers: server.url, agent: "agent:planner" });
    const bus = await connectBus({ servers: server.url, name: "checker" });
    return new Stage(server, service, planner, bus);
  }

  async worker(name: string, options: { holds?: boolean } = {}): Promise<SpawnedWorker> {
    const all = { heartbeatMs: HEARTBEAT_MS, concurrency: 10, ...options };
    const worker = await runWorker(this.server, name, all);
    this.spawned.push(worker);
    return worker;
  }

  /** Work that is under way: the worker has said something about it. */
  async held(to: string, options: DelegateOptions = {}): Promise<DelegationHandle> {
    const handle = await this.planner.delegate(to, { description: "hold" }, options);
    for await (const { envelope } of handle.events()) if (envelope.type === "task.progress") break;
    return handle;
  }

  async parent(): Promise<string> {
    const parent = await this.planner.submit({ target: this.planner.name });
    await parent.start();
    return parent.id;
  }

  async killAll(): Promise<void> {
    for (const { child, exit } of this.spawned.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exit;
    }
  }

  async assertGreen(): Promise<void> {
    assertGreen(await readRecords(this.bus));
  }

  async close(): Promise<void> {
    await Promise.all([this.planner.close(), this.bus.close()]);
    await this.service.close();
    await this.server.stop();
  }
}

async function typesOf(handle: DelegationHandle): Promise<string[]> {
  const types: string[] = [];
  for await (const { envelope } of handle.events()) types.push(envelope.type);
  return types;
}

describe("a worker that is killed", () => {
  let stage: Stage;
  before(async () => {
    stage = await Stage.open({});
  });
  afterEach(() => stage.killAll());
  after(() => stage.close());

  it("takes its jobs with it after three intervals, and its parent is free", async () => {
    const parent = await stage.parent();
    const { child, sessionId } = await stage.worker("agent:one", { holds: true });
    const handles = await Promise.all(
      Array.from({ length: 5 }, () => stage.held("agent:one", { parent })),
    );
    await assert.rejects(stage.planner.handle(parent).complete(), isCode("task_error"));
    child.kill("SIGKILL");
    for (const handle of handles) {
      await assert.rejects(within(handle.result()), (error) => {
        assert.ok(isCode("session_timeout")(error));
        const { details } = error as { details?: { by?: string; session_id?: string } };
        assert.equal(details?.by, "service:delegation-coordinator");
        assert.equal(details?.session_id, sessionId);
        return true;
      });
    }
    await stage.planner.handle(parent).complete();
    await stage.assertGreen();
  });

  it("ends what it has given out below its own job with it, leaves first", async () => {
    const { child } = await stage.worker("agent:top", { holds: true });
    const handle = await stage.held("agent:top");
    await using top = await connect({ servers: stage.server.url, agent: "agent:top" });
    const below = await top.delegate("agent:nobody", "part", { parent: handle.taskId });
    child.kill("SIGKILL");
    await assert.rejects(within(below.result()), isCode("task_cancelled"));
    await assert.rejects(within(handle.result()), isCode("session_timeout"));
    await stage.assertGreen();
  });

  it("has its work done by a fellow when it is given out again, once", async () => {
    const parent = await stage.parent();
    const first = await stage.worker("agent:two", { holds: true });
    const handle = await stage.held("agent:two", { parent, again: 1, key: "k" });
    const second = await stage.worker("agent:two");
    first.child.kill("SIGKILL");
    const result = (await within(handle.result())) as { did: string; sessionId: string };
    assert.deepEqual([result.did, result.sessionId], ["hold", second.sessionId]);
    const types = await typesOf(handle);
    for (const [type, count] of [
      ["delegation.requested", 2],
      ["task.failed", 1],
      ["task.completed", 1],
    ] as const)
      assert.equal(types.filter((each) => each === type).length, count, types.join());
    const again = await stage.planner.delegate("agent:two", "hold", { parent, again: 1, key: "k" });
    assert.deepEqual(await within(again.result()), result, "a delegator that starts again");
    await stage.planner.handle(parent).complete();
    await stage.assertGreen();
  });

  it("that was only stopped says nothing more about what a fellow has done since", async () => {
    const first = await stage.worker("agent:three", { holds: true });
    const handle = await stage.held("agent:three", { again: 1 });
    const lost = handle.taskId;
    first.child.kill("SIGSTOP");
    await stage.worker("agent:three");
    const result = await within(handle.result());
    first.child.kill("SIGCONT");
    const next = await stage.planner.delegate("agent:three", "awake");
    await within(next.accepted);
    assert.deepEqual(await handle.result(), result);
    const { result: view } = await stage.planner.read("tasks", "task", { task_id: lost });
    assert.equal((view as { state: string }).state, "failed");
    await stage.assertGreen();
  });
});

describe("a worker that is killed where the deployment keeps its tasks", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await Stage.open({ orphanedTasks: "keep" });
  });
  afterEach(async () => {
    await stage.killAll();
    await stage.close();
  });

  it("leaves them to the other processes of its name", async () => {
    const { child, sessionId } = await stage.worker("agent:one", { holds: true });
    const handle = await stage.held("agent:one");
    await using fellow = await connect({ servers: stage.server.url, agent: "agent:one" });
    const job = fellow.handle(handle.taskId);
    await assert.rejects(job.progress(), (error) => {
      const { details } = error as { details?: { session_id?: string } };
      return isCode("unauthorized")(error) && details?.session_id === sessionId;
    });
    const ends = stage.planner.subscribe({ types: "session.error", session_id: sessionId });
    await ends.ready;
    child.kill("SIGKILL");
    await within(ends.next());
    await ends.close();
    await job.complete("taken over");
    assert.equal(await within(handle.result()), "taken over");
    await stage.assertGreen();
  });
});
