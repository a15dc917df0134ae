/** Failures that users of similar systems reported, by the names of the reports; here those of agents at work. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  type Agent,
  connect,
  type DelegationHandle,
  RejectedError,
  type Work,
} from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { HarmovelaError } from "@harmovela/failure";
import {
  generateTokenKeys,
  openService,
  openTokenKeys,
  type RunningService,
} from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const root = fileURLToPath(new URL("../../", import.meta.url));
const DEADLINE_MS = 30_000;

/** Fails instead of hanging. */
async function within<T>(what: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${DEADLINE_MS} ms`)), DEADLINE_MS);
  });
  try {
    return await Promise.race([what, late]);
  } finally {
    clearTimeout(timer);
  }
}

const soon = (ms: number): Date => new Date(Date.now() + ms);

describe("agents at work", () => {
  let server: NatsServer;
  let service: RunningService;
  let planner: Agent;
  const children: ChildProcess[] = [];

  before(async () => {
    server = await startNatsServer();
    service = await openService(createCoordinator(), {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
      tokens: await openTokenKeys(await generateTokenKeys()),
    });
    await service.host.untilLeading();
    planner = await connect({ servers: server.url, agent: "agent:planner" });
  });
  after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await planner.close();
    await service.close();
    await server.stop();
  });

  const agent = (name: string): Promise<Agent> => connect({ servers: server.url, agent: name });

  async function started(): Promise<string> {
    const parent = await planner.submit({ target: planner.name });
    await parent.start();
    return parent.id;
  }

  /** The ends of a task that were accepted, as "type by source". */
  async function endsOf(taskId: string): Promise<string[]> {
    const { result } = await planner.read("tasks", "history", { task_id: taskId });
    const { events } = result as unknown as { events: { type: string; source: string }[] };
    return events
      .filter(({ type }) => /^task\.(?:completed|failed|cancelled|timed_out)$/.test(type))
      .map(({ type, source }) => `${type} by ${source}`);
  }

  test("A3 the second effect of a cancelled job is refused before it is done, and nothing is a failure", async () => {
    await using crew = await agent("agent:effects");
    const done: string[] = [];
    let goOn: () => void = () => {};
    const firstEffect = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let claims: unknown;
    const worker = await crew.worker({ concurrency: 1 }, async (_job, ctx) => {
      await ctx.progress({ message: "first" });
      done.push("first");
      await firstEffect;
      // It has a signal and does not look at it: the service still says no.
      claims = await ctx.progress({ message: "second" }).catch((error: unknown) => error);
      if (claims instanceof Error) throw claims;
      done.push("second");
      return "both";
    });
    const parent = await started();
    const handle = await planner.delegate(crew.name, "two effects", { parent });
    for await (const { envelope } of handle.events()) if (envelope.type === "task.progress") break;
    await planner.handle(parent).cancel({ now: true });
    assert.equal((await within(planner.handle(parent).settled())).state, "cancelled");
    goOn();
    await within(worker.close());
    assert.ok(claims instanceof RejectedError && claims.code === "task_error");
    assert.deepEqual(done, ["first"]);
    assert.deepEqual(await endsOf(handle.taskId), [
      "task.cancelled by service:delegation-coordinator",
    ]);
    assert.deepEqual(await endsOf(parent), ["task.cancelled by agent:planner"]);
  });

  test("A11 cancelling a run reaches the run that it started, and each ends once", async () => {
    await using outer = await agent("agent:outer");
    await using inner = await agent("agent:inner");
    const aborted: string[] = [];
    let innerTask = "";
    await inner.worker({ concurrency: 1 }, async (_job, ctx) => {
      await ctx.progress({ message: "nested" });
      if (!ctx.signal.aborted) await once(ctx.signal, "abort");
      aborted.push("inner");
      throw ctx.signal.reason;
    });
    const nested = new Promise<void>((resolve) => {
      outer
        .worker({ concurrency: 1 }, async (_job, ctx) => {
          ctx.signal.addEventListener("abort", () => aborted.push("outer"));
          const part = await ctx.delegate(inner.name, "nested");
          innerTask = part.taskId;
          for await (const { envelope } of part.events())
            if (envelope.type === "task.progress") break;
          resolve();
          return await part.result();
        })
        .catch(() => undefined);
    });
    const handle = await planner.delegate(outer.name, "whole");
    await within(nested);
    await handle.cancel({ grace_period_ms: 20_000 });
    await assert.rejects(within(handle.result()), { code: "task_cancelled" });
    await within(planner.handle(innerTask).settled());
    assert.deepEqual(aborted.toSorted(), ["inner", "outer"]);
    assert.deepEqual(await endsOf(innerTask), ["task.cancelled by agent:inner"]);
    assert.deepEqual(await endsOf(handle.taskId), ["task.cancelled by agent:outer"]);
  });

  test("O3 five jobs that hang: each ends at its deadline with its cause, and the worker works on", async () => {
    await using crew = await agent("agent:hangs");
    const reports: HarmovelaError[] = [];
    let onAllReported = (): void => {};
    const allReported = new Promise<void>((resolve) => {
      onAllReported = resolve;
    });
    const options = {
      concurrency: 5,
      patienceMs: 60_000,
      onError: (error: HarmovelaError) => {
        if (reports.push(error) === 5) onAllReported();
      },
    };
    await crew.worker(options, async (job) => {
      if (job.description === "hangs") await new Promise(() => {});
      return "done";
    });
    const parent = await started();
    const hanging = await Promise.all(
      [1, 2, 3, 4, 5].map(() =>
        planner.delegate(crew.name, "hangs", { parent, deadline: soon(2_000) }),
      ),
    );
    const next = await planner.delegate(crew.name, "works", { parent });
    for (const handle of hanging) {
      const error = await within(handle.result()).catch((caught: unknown) => caught);
      assert.ok(error instanceof HarmovelaError && error.code === "task_timeout");
      assert.equal(error.category, "dependency");
      assert.deepEqual(await endsOf(handle.taskId), [
        "task.timed_out by service:delegation-coordinator",
      ]);
    }
    assert.equal(await within(next.result()), "done");
    await within(allReported);
    assert.deepEqual(
      reports.map(({ details }) => details?.task_id).toSorted(),
      hanging.map(({ taskId }) => taskId).toSorted(),
    );
    await planner.handle(parent).complete();
  });

  function workerProcess(name: string, options: object): ChildProcess {
    const path = "packages/client/test/worker-process.ts";
    const child = spawn(process.execPath, ["--conditions=development", "--import", "tsx", path], {
      cwd: root,
      env: {
        ...process.env,
        HARMOVELA_SERVERS: server.url,
        WORKER_NAME: name,
        WORKER_OPTIONS: JSON.stringify(options),
      },
      stdio: "ignore",
    });
    children.push(child);
    return child;
  }

  test("H7 a worker is killed in the midst of draining 24 jobs: each is done by the next or has a true end", async () => {
    const name = "agent:drained";
    const first = workerProcess(name, { concurrency: 12, patienceMs: 60_000 });
    const parent = await started();
    const warm = await planner.delegate(name, "warms up", { parent });
    await within(warm.result());
    const offers = (work: Work, more: { deadline?: Date } = {}): Promise<DelegationHandle[]> =>
      Promise.all(
        Array.from({ length: 12 }, () => planner.delegate(name, work, { parent, ...more })),
      );
    const running = await offers({ context: { holds: true } }, { deadline: soon(8_000) });
    for (const handle of running)
      for await (const { envelope } of handle.events())
        if (envelope.type === "task.progress") break;
    const waiting = await offers("waits");
    first.kill("SIGTERM");
    // Jobs that hold are given thirty seconds to end; whoever launched it does not wait so long.
    setTimeout(() => first.kill("SIGKILL"), 1_000);
    await once(first, "exit");
    workerProcess(name, { concurrency: 4, patienceMs: 60_000 });
    for (const handle of waiting) {
      assert.equal(((await within(handle.result())) as { did: string }).did, "waits");
    }
    for (const handle of running) {
      await assert.rejects(within(handle.result()), { code: "task_timeout" });
      assert.deepEqual(await endsOf(handle.taskId), [
        "task.timed_out by service:delegation-coordinator",
      ]);
    }
    await planner.handle(parent).complete();
  });
});
