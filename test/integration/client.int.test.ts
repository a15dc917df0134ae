/** The client against a real server and the real coordinator. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { connectBus } from "@harmovela/bus";
import {
  type Agent,
  connect,
  type Draft,
  openAgent,
  RejectedError,
  type Verdict,
  type WorkerTask,
} from "@harmovela/client";
import { HarmovelaError } from "@harmovela/failure";
import { openService, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { createCoordinator } from "../../services/delegation-coordinator/src/service.ts";

const DEADLINE_MS = 30_000;

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
      logger: pino({ level: "silent" }),
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
      assert.deepEqual(error.details?.active_children, [child.id]);
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

  for (const name of [
    "a b",
    "a..b",
    "a.b",
    "*",
    ">",
    "-",
    "agent:x",
    "\u{1F600}",
    "__proto__",
    "constructor",
    "%2A",
    "caf\u00e9",
    "cafe\u0301",
    "a\u200db\u200fc",
    "w\u043erker",
    "x".repeat(128),
  ]) {
    it(`M15 N7 agent, tenant and task named ${JSON.stringify(name).slice(0, 24)} come back as they are`, async () => {
      // A tenant of this one name is no tenant.
      const tenant = name === "-" ? "dash" : name;
      const one = await agent(name, tenant);
      const seen = one.subscribe({ types: "task.*", source: name, task_id: name, from: "start" });
      const handle = await within(one.submit({ task_id: name, target: name }));
      assert.equal(handle.id, name);
      const { value } = await within(seen.next());
      assert.equal(value?.envelope.source, name);
      assert.equal(value?.envelope.target, name);
      assert.equal(value?.envelope.task_id, name);
      assert.equal(value?.envelope.tenant_id, tenant);
      const task = (await within(one.tasks().next())).value as WorkerTask;
      assert.equal(task.id, name);
      await within(task.start());
      await within(task.complete());
      assert.equal((await within(handle.settled())).by, name);
      const { result } = await within(one.task(name));
      assert.equal((result as { task_id: string }).task_id, name);
    });
  }

  it("a tenant named - is refused at once", async () => {
    await assert.rejects(agent("agent:n", "-"), isCode("invalid_argument"));
  });

  for (const name of ["", "\r\nPUB x 0", "x".repeat(1_000), "\ud800", "a\u0000b"]) {
    it(`M15 the name ${JSON.stringify(name).slice(0, 24)} is refused at once`, async () => {
      await assert.rejects(agent(name), isCode("invalid_argument"));
      await assert.rejects(agent("agent:n", name), isCode("invalid_argument"));
      const one = await agent("agent:n");
      const draft = { type: "task.submitted", task_id: name, payload: {} };
      await assert.rejects(within(one.publish(draft)), isCode("invalid_envelope"));
    });
  }

  it("what the client would not send is refused by the judge, and the refusal arrives", async () => {
    const one = await agent("agent:judged");
    const send = (draft: Draft) => within(one.publish(draft, { validate: false }));
    for (const [draft, code] of [
      [{ type: "no.such.type", payload: {} }, "unknown_event_type"],
      [{ type: "task.submitted", payload: {}, source: "agent:other" }, "unauthorized"],
      [{ type: "task.submitted", payload: { timeout_ms: "soon" } }, "invalid_envelope"],
      [{ type: "task.submitted", payload: {}, id: "\ud800" }, "invalid_envelope"],
      [{ type: "", payload: {} }, "invalid_event_type"],
      [{ type: "x..y", payload: {} }, "invalid_event_type"],
      [{ type: "task.submitted", payload: {}, spec_version: "9" }, "unsupported_version"],
    ] as const) {
      await assert.rejects(
        send(draft),
        (error) => error instanceof RejectedError && isCode(code)(error),
      );
    }
  });

  it("a dropped verdict: it resolves all the same, with one entry", async () => {
    const bus = await connectBus({ servers: server.url, name: "lossy" });
    const subscribe = bus.subscribe.bind(bus);
    let dropped = 0;
    bus.subscribe = (subject, onMessage, queue) =>
      subscribe(
        subject,
        (message) => {
          dropped += 1;
          if (dropped > 1) onMessage(message);
        },
        queue,
      );
    const one = openAgent(bus, { agent: "agent:lossy", retry: { firstMs: 100 } });
    const verdict = (await within(
      one.publish({ type: "task.submitted", task_id: "lossy", payload: {} }),
    )) as Verdict;
    assert.ok(dropped >= 2);
    assert.equal(verdict.duplicate, true);
    const { result } = await within(one.history("lossy"));
    assert.equal((result as { total: number }).total, 1);
    await one.close();
    await bus.close();
  });
});

describe("client while the server and the service come and go", () => {
  it("publishes, observes and settles over restarts: nothing lost, nothing twice, in order", async () => {
    await using server = await startNatsServer();
    const openCoordinator = () =>
      openService(createCoordinator(), {
        servers: server.url,
        version: "0.0.0",
        logger: pino({ level: "silent" }),
      });
    let service = await openCoordinator();
    const planner = await connect({
      servers: server.url,
      agent: "agent:p",
      retry: { firstMs: 500 },
    });
    const observer = await connect({ servers: server.url, agent: "agent:o" });
    const observation = observer.subscribe({ types: "task.*", from: "now" });
    await within(observation.ready);

    const TASKS = 20;
    const STEPS = 10;
    const seen: string[] = [];
    const cursors: number[] = [];
    const reading = (async () => {
      for await (const { envelope, cursor } of observation) {
        seen.push(`${envelope.task_id} ${envelope.type} ${messageOf(envelope.payload)}`);
        cursors.push(Number(cursor.split(":")[1]));
        if (seen.length === TASKS * (STEPS + 3)) break;
      }
    })();
    const lives = Array.from({ length: TASKS }, async (_, i) => {
      const handle = await planner.submit({ task_id: `t${i}`, target: planner.name });
      await handle.start();
      const steps = Array.from({ length: STEPS }, (_, n) => handle.progress({ message: `${n}` }));
      await Promise.all([...steps, handle.complete()]);
      return handle.settled();
    });
    const all = Promise.all(lives);
    // Bounded: each round waits for what it does, not for a time.
    for (let round = 0; round < 3; round++) {
      await server.restart();
      if (round === 1) {
        await service.close();
        service = await openCoordinator();
      }
    }
    const settled = await within(all, 60_000);
    await within(reading, 60_000);
    assert.equal(settled.filter(({ state }) => state === "completed").length, TASKS);
    for (let i = 0; i < TASKS; i++) {
      const expected = ["task.submitted ", "task.started "];
      for (let n = 0; n < STEPS; n++) expected.push(`task.progress ${n}`);
      expected.push("task.completed ");
      const own = seen.filter((line) => line.startsWith(`t${i} `));
      assert.deepEqual(
        own,
        expected.map((line) => `t${i} ${line}`),
      );
    }
    assert.deepEqual(
      cursors,
      [...new Set(cursors)].sort((a, b) => a - b),
    );
    await Promise.all([planner.close(), observer.close()]);
    await service.close();
  });

  it("a service that starts late judges what waited for it", async () => {
    await using server = await startNatsServer();
    const definition = createCoordinator();
    const config = { servers: server.url, version: "0.0.0", logger: pino({ level: "silent" }) };
    const first = await openService(definition, config);
    await first.close();
    const one = await connect({ servers: server.url, agent: "agent:p", retry: { firstMs: 200 } });
    const bus = await connectBus({ servers: server.url, name: "look" });
    const submitted = one.publish({ type: "task.submitted", task_id: "t", payload: {} });
    // Sent at least twice before anybody judges.
    const deadline = performance.now() + DEADLINE_MS;
    while (((await bus.streamState("HV_IN_TASKS"))?.messages ?? 0) < 2) {
      assert.ok(performance.now() < deadline);
    }
    const second = await openService(createCoordinator(), config);
    const verdict = (await within(submitted)) as Verdict;
    assert.match(verdict.cursor, /^HV_LOG_TASKS:/);
    const { result } = await within(one.history("t"));
    assert.equal((result as { total: number }).total, 1);
    await one.close();
    await bus.close();
    await second.close();
  });
});

describe("client with authentication on", () => {
  const AGENT = "agent:w";
  const config = `
    authorization {
      users: [
        { user: service, password: s }
        { user: worker, password: w, permissions: {
          publish: ["hv.acme.in.*.${AGENT}.>", "hv.acme.rpc.${AGENT}.>",
            "$JS.API.STREAM.INFO.HV_LOG_TASKS",
            "$JS.API.CONSUMER.CREATE.HV_LOG_TASKS.*.hv.acme.log.tasks.>",
            "$JS.API.CONSUMER.MSG.NEXT.HV_LOG_TASKS.*", "$JS.API.CONSUMER.DELETE.HV_LOG_TASKS.*"],
          subscribe: ["_INBOX.acme.${AGENT}.>"] } }
      ]
    }`;
  const user = (name: string, password: string) => ({ user: name, password: () => password });

  it("an agent that may use only its own subjects and inbox publishes, observes, asks and settles", async () => {
    await using server = await startNatsServer({ config });
    const service = await openService(createCoordinator({ authenticated: true }), {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
      writerAuth: user("service", "s"),
    });
    const options = { servers: server.url, tenant: "acme", auth: user("worker", "w") };
    const worker = await connect({ ...options, agent: AGENT });
    const handle = await within(worker.submit({ target: AGENT }));
    const task = (await within(worker.tasks().next())).value as WorkerTask;
    await within(task.start());
    await within(task.complete());
    assert.equal((await within(handle.settled())).state, "completed");
    assert.equal((await within(worker.handle(handle.id).settled())).state, "completed");
    const observation = worker.subscribe({ types: "task.*", from: "start" });
    assert.equal((await within(observation.next())).value?.envelope.task_id, handle.id);
    assert.equal(typeof (await within(worker.why(handle.id))).result, "string");

    const wrong = { ...options, agent: AGENT, auth: user("worker", "x") };
    await assert.rejects(within(connect(wrong)), isCode("unauthorized"));
    const posing = await connect({ ...options, agent: "agent:other" });
    const draft = { type: "task.submitted", payload: {} };
    await assert.rejects(within(posing.publish(draft)), isCode("unauthorized"));
    await Promise.all([worker.close(), posing.close()]);
    await service.close();
  });
});

function messageOf(payload: unknown): string {
  const { message } = (payload ?? {}) as { message?: string };
  return message ?? "";
}
