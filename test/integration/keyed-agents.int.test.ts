/** Agents that hold nothing but a key, with the whole SDK, against all services as processes. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { CHECKPOINT_BUCKET, DOMAINS } from "@harmovela/bus";
import { type Agent, CHECKPOINT_BYTES_MAX, type Observed } from "@harmovela/client";
import type { Domain } from "@harmovela/envelope";
import { eventually, within } from "../chaos/deadline.ts";
import { controlsOf, readRecords } from "../chaos/stored-log.ts";
import { Stage } from "./attack-stage.ts";

const PLANNER = "agent:planner";
const WORKER = "agent:worker";
const DEADLINE_MS = 30_000;
/** Five parts on the way. */
const STATE_BYTES = 1_200_000;

class Signal {
  raise: () => void = () => {};
  readonly raised = new Promise<void>((resolve) => {
    this.raise = resolve;
  });
}

describe("agents with keys", () => {
  let stage: Stage;
  let planner: Agent;
  const leaders = new Map<Domain, ChildProcess>();

  before(async () => {
    const names = [PLANNER, WORKER].map((name) => ["acme", name] as const);
    stage = await Stage.open([...names, ["beta", PLANNER]], { services: false });
    for (const domain of DOMAINS) leaders.set(domain, stage.spawnService(domain));
    for (const domain of DOMAINS) {
      const epoch = await eventually(DEADLINE_MS, `${domain} is led`, async () =>
        controlsOf(await readRecords(stage.operator, domain), "epoch").at(0),
      );
      const { authenticated } = epoch.body.settings as { authenticated?: boolean };
      assert.equal(authenticated, true, domain);
    }
    planner = await stage.sdkAgent("acme", PLANNER);
  });
  after(() => stage[Symbol.asyncDispose]());

  test("a task is submitted, found by who works on it, and its end and its story are told", async () => {
    const worker = await stage.sdkAgent("acme", WORKER);
    const handle = await planner.submit({ target: WORKER, description: "count" });
    const tasks = worker.tasks();
    const { value: task } = await within(DEADLINE_MS, "the task", tasks.next());
    assert.equal(task?.id, handle.id);
    await task.accept();
    await task.start();
    await task.complete(42);
    const { state, by } = await within(DEADLINE_MS, "its end", handle.settled());
    assert.deepEqual([state, by], ["completed", WORKER]);
    const types: string[] = [];
    for await (const { envelope } of planner.subscribe({
      task_id: task.id,
      from: "start",
      domains: ["tasks"],
    })) {
      types.push(envelope.type);
      if (envelope.type === "task.completed") break;
    }
    assert.deepEqual(types, ["task.submitted", "task.accepted", "task.started", "task.completed"]);
    await tasks.close();
  });

  test("work is delegated, stopped with a large checkpoint, and goes on from exactly that", async () => {
    const agent = await stage.sdkAgent("acme", WORKER);
    const state = Buffer.alloc(STATE_BYTES, "state ");
    const saved = new Signal();
    const worker = await agent.worker({ concurrency: 2 }, async (_job, ctx) => {
      if (ctx.resumedFrom) return { same: state.equals(await ctx.resumedFrom.bytes()) };
      await ctx.checkpoint({ too: "small" });
      await ctx.checkpoint(state);
      saved.raise();
      await new Promise((_, fail) => {
        ctx.signal.addEventListener("abort", () => fail(ctx.signal.reason), { once: true });
      });
      return undefined;
    });
    const handle = await planner.delegate(WORKER, { description: "long" });
    await within(DEADLINE_MS, "a checkpoint", saved.raised);
    const bucket = stage.operator.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const names = async () => (await bucket.list()).map(({ name, bytes }) => [name, bytes]);
    const interruption = await planner.interruptions.request(handle.taskId);
    const { checkpointId } = await within(DEADLINE_MS, "it is saved", interruption.saved);
    // Announced is what is stored; the one before it has gone.
    const name = `acme.${handle.taskId}.${checkpointId}`;
    await eventually(DEADLINE_MS, "only the newest is kept", async () =>
      JSON.stringify(await names()) === JSON.stringify([[name, STATE_BYTES]]) ? true : undefined,
    );
    await planner.interruptions.resume(handle.taskId);
    assert.deepEqual(await within(DEADLINE_MS, "the result", handle.result()), { same: true });
    await worker.close();
  });

  test("what is held true is watched, and what others say of one's tenant alone is heard", async () => {
    const watch = planner.beliefs.watch("context:weather");
    await watch.ready;
    const other = await stage.sdkAgent("beta", PLANNER);
    await other.beliefs.assert("context:weather", "snow");
    await planner.beliefs.assert("context:weather", "rain");
    const { value } = await within(DEADLINE_MS, "the news", watch.next());
    assert.equal(value?.envelope.source, PLANNER);
    assert.match(JSON.stringify(value?.envelope.payload), /rain/);
    await watch.close();
  });

  test("nothing is lost and nothing comes twice when who answers or stores is killed, and the server too", async () => {
    // A standby that has read the log answers as well, and takes over.
    for (const domain of ["tasks", "interruptions"] as const) stage.spawnService(domain);
    const keeping = await keepLarge(stage, planner);
    const before = planner.subscribe({ domains: ["tasks"], from: "start", maxBuffered: 32 });
    const live = planner.subscribe({ types: "task.progress", domains: ["tasks"], from: "now" });
    await Promise.all([before.ready, live.ready]);
    const task = await planner.submit({ target: PLANNER });
    await task.accept();
    await task.start();
    const said: string[] = [];
    const entries: Observed[] = [];
    const reading = (async () => {
      for await (const entry of live) {
        entries.push(entry);
        if (entries.length === 120) return;
      }
    })();
    for (let step = 0; step < 120; step++) {
      if (step === 40)
        for (const domain of ["tasks", "interruptions"] as const)
          leaders.get(domain)?.kill("SIGKILL");
      if (step === 80) await stage.server.restart();
      const payload = { task_id: task.id, state: "progress", message: `${step}` };
      const { id } = await planner.publish({ type: "task.progress", task_id: task.id, payload });
      said.push(String(id));
    }
    await within(DEADLINE_MS, "all of it", reading);
    assert.deepEqual(
      entries.map(({ envelope }) => (envelope.payload as { message?: string }).message),
      Array.from({ length: 120 }, (_, step) => `${step}`),
    );
    const stored = (await readRecords(stage.operator, "tasks")).filter(({ subject }) =>
      subject.startsWith("hv.acme.log."),
    );
    const all: string[] = [];
    while (all.length < stored.length) {
      const { value } = await within(
        DEADLINE_MS,
        `${all.length} of ${stored.length}`,
        before.next(),
      );
      all.push(value?.cursor ?? "");
    }
    assert.deepEqual(
      all,
      stored.map(({ seq }) => `HV_LOG_TASKS:${seq}`),
    );
    const epochs = controlsOf(await readRecords(stage.operator, "tasks"), "epoch");
    assert.equal(new Set(epochs.map(({ body }) => body.instance)).size, 2, "another one leads");
    await task.complete();
    await keeping.end();
  });
});

/** A job that stores a large checkpoint after a large one; `end` has found the last in the bucket. */
async function keepLarge(stage: Stage, planner: Agent): Promise<{ end(): Promise<void> }> {
  const states = [1, 2].map((digit) => Buffer.alloc(CHECKPOINT_BYTES_MAX, `${digit}`));
  const begun = new Signal();
  const kept = new Signal();
  const looked = new Signal();
  let last = "";
  const agent = await stage.sdkAgent("acme", WORKER);
  const worker = await agent.worker({ concurrency: 1 }, async (_job, ctx) => {
    for (const [at, state] of states.entries()) {
      if (at === 1) begun.raise();
      last = await ctx.checkpoint(state);
    }
    kept.raise();
    await looked.raised;
    return last;
  });
  const handle = await planner.delegate(WORKER, { description: "large" });
  await within(DEADLINE_MS, "one is stored", begun.raised);
  const end = async (): Promise<void> => {
    await within(DEADLINE_MS, "the other one is stored", kept.raised);
    const bucket = stage.operator.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    const stored = await bucket.get(`acme.${handle.taskId}.${last}`);
    assert.ok(stored && states[1]?.equals(stored));
    looked.raise();
    assert.equal(await within(DEADLINE_MS, "the result", handle.result()), last);
    await worker.close();
  };
  return { end };
}
