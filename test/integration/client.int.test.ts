/** The client against a real server and the real coordinator. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Agent, connect, RejectedError, type WorkerTask } from "@harmovela/client";
import { createCoordinator } from "../../services/delegation-coordinator/src/service.ts";
import { HarmovelaError } from "@harmovela/failure";
import { openService, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const DEADLINE_MS = 20_000;

/** Fails instead of hanging. */
async function within<T>(what: Promise<T>, ms = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([what, late]);
  } finally {
    clearTimeout(timer);
  }
}

function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

describe("client and coordinator", () => {
  let server: NatsServer;
  let service: RunningService;
  const open: Agent[] = [];

  before(async () => {
    server = await startNatsServer();
    service = await openService(createCoordinator(), {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: process.env["HV_LOG"] ?? "silent" }),
    });
  });
  after(async () => {
    await Promise.all(open.map((agent) => agent.close()));
    await service.close();
    await server[Symbol.asyncDispose]();
  });

  async function agent(name: string, tenant?: string): Promise<Agent> {
    const opened = await connect({
      servers: server.url,
      agent: name,
      ...(tenant === undefined ? {} : { tenant }),
    });
    open.push(opened);
    return opened;
  }

  it("a planner and a worker settle a tree; the parent stays open while a child is live", async () => {
    const planner = await agent("agent:planner");
    const worker = await agent("agent:worker");
    const inbox = worker.tasks();
    await inbox.ready;

    const root = await planner.submit({ description: "the whole", target: planner.name });
    await root.accept();
    await root.start();
    const child = await root.child({ target: worker.name, description: "a part" });

    const offered = await within(inbox.next());
    const task = offered.value as WorkerTask;
    assert.equal(task.id, child.id);
    assert.equal(task.submission.source, planner.name);
    await task.accept();
    await task.start();
    const progress = await task.progress({ message: "half", progress: 0.5 });
    assert.match(progress.cursor, /^HV_LOG_TASKS:\d+$/);

    await assert.rejects(root.complete(), (error) => {
      assert.ok(error instanceof RejectedError);
      assert.equal(error.code, "task_error");
      assert.deepEqual(error.details?.["active_children"], [child.id]);
      assert.equal(error.retryable, false);
      return true;
    });

    await task.complete({ answer: 42 });
    const ended = await within(child.settled());
    assert.equal(ended.state, "completed");
    assert.equal(ended.by, worker.name);
    assert.deepEqual(ended.envelope.payload, {
      task_id: child.id,
      state: "completed",
      result: { answer: 42 },
    });
    await root.complete();
    assert.equal((await within(root.settled())).state, "completed");
    assert.equal((await within(planner.handle(child.id).settled())).by, worker.name);

    const { result, position } = await planner.task(root.id);
    assert.equal((result as { state: string }).state, "completed");
    assert.match(position ?? "", /^HV_LOG_TASKS:/);
    assert.equal(task.signal.aborted, false);
    await inbox.close();
  });

  it("a cancellation aborts the worker's signal and settles the handle", async () => {
    const planner = await agent("agent:p2");
    const worker = await agent("agent:w2");
    const inbox = worker.tasks();
    const root = await planner.submit({ target: worker.name });
    const task = (await within(inbox.next())).value as WorkerTask;
    await task.accept();
    await task.start();
    const aborted = new Promise<unknown>((resolve) => {
      task.signal.addEventListener("abort", () => resolve(task.signal.reason), { once: true });
    });
    const verdict = await root.cancel({ reason: "not needed", grace_period_ms: 60_000 });
    assert.equal(verdict.pending, true);
    const reason = await within(aborted);
    assert.ok(isCode("task_cancelled")(reason));
    await task.cancel({ now: true, reason: "stopped" });
    const ended = await within(root.settled());
    assert.equal(ended.state, "cancelled");
    assert.equal(ended.by, worker.name);
    await inbox.close();
  });

  it("a task that nobody ends is timed out by the coordinator, and its handle says so", async () => {
    const planner = await agent("agent:p3");
    const task = await planner.submit({ timeout_ms: 50 });
    const ended = await within(task.settled());
    assert.equal(ended.state, "timed_out");
    assert.equal(ended.by, "service:delegation-coordinator");
  });

  it("a domain without a service fails with no_service", async () => {
    const one = await agent("agent:p4");
    const started = performance.now();
    await assert.rejects(
      within(one.publish({ type: "memory.fact.added", payload: { fact_id: "f", value: 1 } })),
      isCode("no_service"),
    );
    assert.ok(performance.now() - started < 10_000);
    await assert.rejects(within(one.read("beliefs", "status")), isCode("no_service"));
  });
});
