/** Delegating and working, against a real server and the real coordinator; workers are processes. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type Agent, connect } from "@harmovela/client";
import { HarmovelaError } from "@harmovela/failure";
import { generateTokenKeys, openTokenKeys, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import {
  coordinator,
  isCode,
  run,
  runWorker,
  type Spawned,
  type SpawnedWorker,
  within,
} from "./worker-support.ts";

describe("agents as workers", () => {
  let server: NatsServer;
  let service: RunningService;
  let planner: Agent;
  const spawned: Spawned[] = [];

  before(async () => {
    server = await startNatsServer();
    service = await coordinator(server, {}, await openTokenKeys(await generateTokenKeys()));
    planner = await connect({ servers: server.url, agent: "agent:planner" });
  });
  afterEach(async () => {
    for (const { child, exit } of spawned.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exit;
    }
  });
  after(async () => {
    await planner.close();
    await service.close();
    await server.stop();
  });

  /** Its session's id, once it takes offers. */
  async function worker(
    name: string,
    options: Record<string, unknown> = {},
  ): Promise<SpawnedWorker> {
    const started = await runWorker(server, name, options);
    spawned.push(started);
    return started;
  }

  async function started(): Promise<string> {
    const parent = await planner.submit({ target: planner.name });
    await parent.start();
    return parent.id;
  }

  it("two processes of one name share fifty jobs, each done once, each in its own session", async () => {
    const [one, two] = await Promise.all([
      worker("agent:crew", { concurrency: 2, patienceMs: 20_000 }),
      worker("agent:crew", { concurrency: 2, patienceMs: 20_000 }),
    ]);
    assert.notEqual(one.sessionId, two.sessionId);
    const parent = await started();
    const handles = await Promise.all(
      Array.from({ length: 50 }, (_, i) => planner.delegate("agent:crew", `job ${i}`, { parent })),
    );
    const results = await within(Promise.all(handles.map((handle) => handle.result())));
    const sessions = new Set<unknown>();
    for (const [i, handle] of handles.entries()) {
      const result = results[i] as { sessionId: string; did: string };
      assert.equal(result.did, `job ${i}`);
      sessions.add(result.sessionId);
      const types: string[] = [];
      for await (const { envelope } of handle.events()) {
        types.push(envelope.type);
        // Whoever accepted is whoever works: one never speaks for the other.
        if (envelope.source === "agent:crew") assert.equal(envelope.session_id, result.sessionId);
      }
      assert.equal((await handle.accepted).sessionId, result.sessionId);
      for (const type of ["delegation.accepted", "task.started", "task.completed"])
        assert.equal(types.filter((each) => each === type).length, 1, types.join());
    }
    assert.deepEqual(sessions, new Set([one.sessionId, two.sessionId]));
    await planner.handle(parent).complete();
  });

  it("a cancellation reaches the job, which ends as cancelled", async () => {
    await worker("agent:holder");
    const parent = await started();
    const handle = await planner.delegate("agent:holder", { context: { holds: true } }, { parent });
    await handle.accepted;
    for await (const { envelope } of handle.events()) if (envelope.type === "task.progress") break;
    await handle.cancel({ grace_period_ms: 20_000 });
    await assert.rejects(within(handle.result()), (error) => {
      assert.ok(isCode("task_cancelled")(error));
      assert.equal((error as HarmovelaError).details?.by, "agent:holder");
      return true;
    });
  });

  it("a job that throws fails with a record and without its text", async () => {
    await worker("agent:thrower");
    const fails = async (throws: string): Promise<HarmovelaError> => {
      const handle = await planner.delegate("agent:thrower", { context: { throws } });
      return within(
        handle.result().then(
          () => assert.fail("it completed"),
          (error) => error as HarmovelaError,
        ),
      );
    };
    const plain = await fails("plain");
    assert.equal(plain.code, "tool_error");
    assert.equal(plain.message, "the job threw Error");
    const { failure } = plain.details ?? {};
    assert.ok(typeof failure === "object" && failure !== null && "code" in failure);
    assert.equal(failure.code, "tool_error");
    assert.doesNotMatch(JSON.stringify(plain.details), /secret|\.ts/);
    const typed = await fails("typed");
    assert.equal(typed.code, "missing_capability");
    assert.equal(typed.message, "no such tool");
  });

  it("what cannot be taken in time is refused, with a time to ask again", async () => {
    await worker("agent:busy", { concurrency: 1, patienceMs: 0, retryAfterMs: 60_000 });
    const first = await planner.delegate("agent:busy", { context: { holds: true } });
    await within(first.accepted);
    const second = await planner.delegate("agent:busy", "too much");
    await assert.rejects(within(second.accepted), (error) => {
      assert.ok(error instanceof HarmovelaError && error.code === "task_error");
      assert.equal(error.details?.reason, "at capacity");
      assert.ok(typeof error.retry === "object" && error.retry.afterMs > 30_000);
      return true;
    });
    await assert.rejects(second.result(), isCode("task_error"));
    await first.cancel({ now: true });
    await assert.rejects(within(first.result()), isCode("task_cancelled"));
  });

  it("on SIGTERM it ends what it has, closes its session and exits 0", async () => {
    const { child, exit, sessionId, printed } = await worker("agent:leaver", { drainMs: 0 });
    const handle = await planner.delegate("agent:leaver", { context: { holds: true } });
    await within(handle.accepted);
    for await (const { envelope } of handle.events()) if (envelope.type === "task.progress") break;
    child.kill("SIGTERM");
    assert.deepEqual(await within(exit), [0, null], printed());
    await assert.rejects(within(handle.result()), isCode("internal_error"));
    const { result } = await planner.read("tasks", "session", { session_id: sessionId });
    assert.equal((result as { state: string }).state, "closed");
  });

  it("an offer that was made before there was a worker is taken", async () => {
    const handle = await planner.delegate("agent:late", "waits");
    await worker("agent:late");
    const result = (await within(handle.result())) as { did: string };
    assert.equal(result.did, "waits");
  });

  it("the same key makes one task, whose result every handle has", async () => {
    const parent = await started();
    const [one, two] = [
      await planner.delegate("agent:once", "only once", { parent, key: "k" }),
      await planner.delegate("agent:once", "only once", { parent, key: "k" }),
    ];
    assert.equal(one.taskId, two.taskId);
    await worker("agent:once");
    assert.deepEqual(await within(one.result()), await within(two.result()));
    const again = await planner.delegate("agent:once", "only once", { parent, key: "k" });
    assert.deepEqual(await within(again.result()), await one.result());
    assert.equal((await again.accepted).by, "agent:once");
  });

  it("the handoff is completed by itself, with a token, before the work begins", async () => {
    await worker("agent:taker");
    const parent = await started();
    const handle = await planner.delegate("agent:taker", "all yours", { parent });
    await within(handle.result());
    assert.equal((await handle.handoff).completed, true);
    const types: string[] = [];
    for await (const { envelope } of handle.events()) types.push(envelope.type);
    assert.deepEqual(types, [
      "delegation.requested",
      "delegation.accepted",
      "delegation.handoff.completed",
      "task.started",
      "task.completed",
    ]);
    const { result } = await planner.read("tasks", "delegation", { task_id: handle.taskId });
    assert.equal((result as { state: string }).state, "handed_off");
  });

  it("a task under way is handed on, and its worker begins when it is its own", async () => {
    await worker("agent:heir");
    const own = await planner.submit({ target: planner.name, description: "begun" });
    await own.start();
    const handle = await planner.delegate("agent:heir", "go on", {
      task_id: own.id,
      handoff: false,
    });
    await within(handle.accepted);
    await own.progress({ message: "still mine" });
    assert.equal((await handle.completeHandoff()).completed, true);
    await assert.rejects(own.progress(), isCode("unauthorized"));
    assert.equal(((await within(handle.result())) as { did: string }).did, "go on");
  });

  it("an answer that comes again is refused and is no second result", async () => {
    const name = "agent:echo";
    await worker(name);
    const handle = await planner.delegate(name, "once");
    const result = await within(handle.result());
    await using other = await connect({ servers: server.url, agent: name });
    await assert.rejects(other.handle(handle.taskId).complete("again"), isCode("task_error"));
    assert.deepEqual(await handle.result(), result);
  });

  it("a worker that is killed loses its session after three intervals; its fellow works on", async () => {
    const options = { heartbeatMs: 250, concurrency: 1 };
    const [one, two] = [await worker("agent:pair", options), await worker("agent:pair", options)];
    const ends = planner.subscribe({ types: "session.error", session_id: one.sessionId });
    await ends.ready;
    one.child.kill("SIGKILL");
    const lost = (await within(ends.next())).value;
    assert.match(JSON.stringify(lost?.envelope.payload), /"code":"session_timeout"/);
    await ends.close();
    const handle = await planner.delegate("agent:pair", "go on");
    await within(handle.result());
    assert.equal((await handle.accepted).sessionId, two.sessionId);
    const { result } = await planner.read("tasks", "session", { session_id: two.sessionId });
    assert.equal((result as { state: string }).state, "ready");
  });

  it("a worker that was stopped for too long drops its jobs and goes on in a new session", async () => {
    const { child, sessionId } = await worker("agent:sleeper", { heartbeatMs: 250 });
    const held = await planner.delegate("agent:sleeper", { context: { holds: true } });
    for await (const { envelope } of held.events()) if (envelope.type === "task.progress") break;
    const ends = planner.subscribe({ types: "session.error", session_id: sessionId });
    await ends.ready;
    child.kill("SIGSTOP");
    await within(ends.next());
    child.kill("SIGCONT");
    await ends.close();
    await assert.rejects(within(held.result()), isCode("session_timeout"));
    const next = await planner.delegate("agent:sleeper", "awake");
    const result = (await within(next.result())) as { sessionId: string };
    assert.notEqual(result.sessionId, sessionId);
  });

  it("the examples: planner and worker in processes of their own", async () => {
    const env = { HARMOVELA_SERVERS: server.url };
    const hotels = run("examples/worker.ts", env);
    const trips = run("examples/planner.ts", env);
    spawned.push(hotels, trips);
    assert.deepEqual(await within(trips.exit), [0, null], trips.printed());
    assert.match(
      trips.printed(),
      /accepted by agent:hotels\nbooked: \{"hotel":"Rialto","nights":3\}/,
    );
    hotels.child.kill("SIGTERM");
    assert.deepEqual(await within(hotels.exit), [0, null], hotels.printed());
  });
});

describe("agents as workers of a service of another kind", () => {
  it("without keys the delegation stays accepted, and the handle says so", async () => {
    await using server = await startNatsServer();
    const service = await coordinator(server, {});
    const planner = await connect({ servers: server.url, agent: "agent:planner" });
    const crew = await connect({ servers: server.url, agent: "agent:crew" });
    try {
      await crew.worker({ concurrency: 1 }, () => "done");
      const handle = await planner.delegate(crew.name, "no token");
      assert.equal(await within(handle.result()), "done");
      const handoff = await within(handle.handoff);
      assert.equal(handoff.completed === false && handoff.why.code, "missing_capability");
      const { result } = await planner.read("tasks", "delegation", { task_id: handle.taskId });
      assert.equal((result as { state: string }).state, "accepted");
    } finally {
      await Promise.all([planner.close(), crew.close()]);
      await service.close();
    }
  });

  it("where a profile wants a parent, work without one gets a root that ends as it does", async () => {
    await using server = await startNatsServer();
    const keys = await openTokenKeys(await generateTokenKeys());
    const settings = { defaultProfiles: ["harmovela.runtime-semantics.v1"] };
    const service = await coordinator(server, settings, keys);
    const planner = await connect({ servers: server.url, agent: "agent:planner" });
    const crew = await connect({ servers: server.url, agent: "agent:crew" });
    try {
      await crew.worker({ concurrency: 1 }, async (job, ctx) => {
        if (job.description !== "whole") return job.description;
        const part = await ctx.delegate("agent:parts", "part");
        return [await part.result()];
      });
      const parts = await connect({ servers: server.url, agent: "agent:parts" });
      await parts.worker({ concurrency: 1 }, (job) => job.description);
      const handle = await planner.delegate(crew.name, "whole");
      assert.deepEqual(await within(handle.result()), ["part"]);
      assert.equal((await handle.handoff).completed, true);
      const root = planner.handle(handle.parentTaskId ?? "");
      assert.equal((await within(root.settled())).state, "completed");
      await parts.close();
    } finally {
      await Promise.all([planner.close(), crew.close()]);
      await service.close();
    }
  });

  it("while the service is replaced under way each job is still done once", async () => {
    await using server = await startNatsServer();
    const keys = await openTokenKeys(await generateTokenKeys());
    let service = await coordinator(server, {}, keys);
    const retry = { firstMs: 500, noServiceMs: 10_000 };
    const planner = await connect({ servers: server.url, agent: "agent:planner", retry });
    const crew = await connect({ servers: server.url, agent: "agent:crew", retry });
    try {
      const done: (string | undefined)[] = [];
      let onHalf: () => void = () => {};
      const half = new Promise<void>((resolve) => {
        onHalf = resolve;
      });
      const options = { concurrency: 2, patienceMs: 60_000, heartbeatMs: 1_000 };
      await crew.worker(options, async (job, ctx) => {
        await ctx.progress({ progress: 0.5 });
        done.push(job.description);
        if (done.length === 10) onHalf();
        return job.description;
      });
      const names = Array.from({ length: 40 }, (_, i) => `job ${i}`);
      const handles = await Promise.all(names.map((name) => planner.delegate(crew.name, name)));
      await within(half);
      await service.close();
      service = await coordinator(server, {}, keys);
      const results = await within(Promise.all(handles.map((handle) => handle.result())));
      assert.deepEqual(results, names);
      assert.deepEqual(done.toSorted(), names.toSorted());
    } finally {
      await Promise.all([planner.close(), crew.close()]);
      await service.close();
    }
  });
});
