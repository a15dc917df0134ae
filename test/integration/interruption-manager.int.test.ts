/** The interruption manager on a real server: alone, beside the coordinator, and over restarts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, connectBus, decodeEntry, intakeStream, logStream } from "@harmovela/bus";
import { type Agent, connect, RejectedError } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { openService, type RunningService, type ServiceDefinition } from "@harmovela/host";
import { createManager, describeState, type ManagerState } from "@harmovela/interruption-manager";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const DEADLINE_MS = 30_000;

async function run<State>(
  server: NatsServer,
  definition: ServiceDefinition<State>,
): Promise<RunningService> {
  const service = await openService(definition, {
    servers: server.url,
    version: "0.0.0",
    logger: pino({ level: "silent" }),
  });
  await service.host.untilLeading();
  return service;
}

function agentOn(server: NatsServer, agent: string): Promise<Agent> {
  return connect({ servers: server.url, tenant: "acme", agent });
}

async function until(is: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + DEADLINE_MS;
  while (!(await is())) {
    assert.ok(performance.now() < end, "not in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Events of a log, of this service's own unless told. */
async function logged(
  bus: Bus,
  type: string,
  domain: Domain = "interruptions",
): Promise<Envelope[]> {
  const stream = logStream(domain);
  const last = (await bus.streamState(stream))?.lastSeq ?? 0;
  const found: Envelope[] = [];
  for (let seq = 1; seq <= last; seq += 1) {
    const stored = await bus.read(stream, seq);
    const entry = stored && decodeEntry(stored);
    if (entry?.kind === "event" && entry.envelope.type === type) found.push(entry.envelope);
  }
  return found;
}

/** What this service has asked the coordinator for, as it lies in the intake. */
async function asked(bus: Bus): Promise<Envelope[]> {
  const stream = intakeStream("tasks");
  const last = (await bus.streamState(stream))?.lastSeq ?? 0;
  const found: Envelope[] = [];
  for (let seq = 1; seq <= last; seq += 1) {
    const stored = await bus.read(stream, seq);
    if (stored === undefined) continue;
    const envelope = JSON.parse(Buffer.from(stored.data).toString()) as Envelope;
    if (envelope.source === "service:interruption-manager") found.push(envelope);
  }
  return found;
}

function refusal(code: string): (error: unknown) => boolean {
  return (error) => error instanceof RejectedError && error.code === code;
}

/** `t`, submitted by the boss and taken by the worker. */
async function started(boss: Agent, worker: Agent): Promise<void> {
  await boss.publish({ type: "task.submitted", task_id: "t", payload: {} });
  await worker.publish({ type: "task.started", task_id: "t", payload: {} });
}

const REQUEST = { type: "interruption.requested", task_id: "t" } as const;
const SAVED = { type: "interruption.saved", task_id: "t", checkpoint_id: "ck" } as const;
const RESUMED = { type: "interruption.resumed", task_id: "t" } as const;

async function read(agent: Agent, verb: string): Promise<JsonObject> {
  const { result } = await agent.read("interruptions", verb, { task_id: "t" });
  return result as JsonObject;
}

test("where nobody has ever run tasks it starts, and says that none is known", async () => {
  await using server = await startNatsServer();
  const manager = await run(server, createManager());
  try {
    await using agent = await agentOn(server, "agent:boss");
    const request = agent.publish({ ...REQUEST, payload: {} });
    await assert.rejects(request, refusal("task_error"));
  } finally {
    await manager.close();
  }
});

test("tasks of elsewhere are stopped and go on without a coordinator", async () => {
  await using server = await startNatsServer();
  const manager = await run(server, createManager({ externalTasks: true }));
  try {
    await using agent = await agentOn(server, "agent:worker");
    await agent.publish({ ...REQUEST, payload: { grace_period_ms: 60_000 } });
    await agent.publish({ type: "interruption.acknowledged", task_id: "t", payload: {} });
    await agent.publish({ ...SAVED, payload: {} });
    assert.equal((await read(agent, "interruption")).is_stopped, true);
    await agent.publish({ ...RESUMED, checkpoint_id: "ck", payload: {} });
    assert.equal((await read(agent, "interruption")).is_stopped, false);
  } finally {
    await manager.close();
  }
});

describe("beside the coordinator", () => {
  test("what was saved is known to the next leader, and the task goes on from it", async () => {
    await using server = await startNatsServer();
    const coordinator = await run(server, createCoordinator());
    await using boss = await agentOn(server, "agent:boss");
    await using worker = await agentOn(server, "agent:worker");
    try {
      const first = await run(server, createManager());
      await started(boss, worker);
      await boss.publish({ ...REQUEST, payload: { grace_period_ms: 60_000 } });
      await worker.publish({ type: "interruption.acknowledged", task_id: "t", payload: {} });
      const payload = { bytes_saved: 3, location: "s3://somewhere/ck" };
      await worker.publish({ ...SAVED, payload });
      await first.close();

      const second = await run(server, createManager());
      try {
        const { checkpoint } = await read(boss, "interruption");
        const { checkpoint_id, location, owner } = checkpoint as JsonObject;
        assert.deepEqual(
          [checkpoint_id, location, owner],
          ["ck", "s3://somewhere/ck", "agent:worker"],
        );
        await boss.publish({ ...RESUMED, checkpoint_id: "ck", payload: {} });
        const again = boss.publish({ ...RESUMED, checkpoint_id: "ck", payload: {} });
        await assert.rejects(again, refusal("task_error"));
        await worker.publish({ type: "task.completed", task_id: "t", payload: {} });
      } finally {
        await second.close();
      }
    } finally {
      await coordinator.close();
    }
  });

  test("a grace that passes while nobody leads is told once, at its time, and asked for once", async () => {
    await using server = await startNatsServer();
    await using bus = await connectBus({ servers: server.url, name: "test" });
    const coordinator = await run(server, createCoordinator());
    await using boss = await agentOn(server, "agent:boss");
    await using worker = await agentOn(server, "agent:worker");
    try {
      const first = await run(server, createManager());
      await started(boss, worker);
      await boss.publish({ ...REQUEST, payload: { grace_period_ms: 1_000 } });
      const { open } = await read(boss, "interruption");
      const due = String((open as JsonObject).due);
      await first.close();
      await until(async () => Date.now() > Date.parse(due));
      assert.equal((await logged(bus, "interruption.requested")).length, 1);

      const second = await run(server, createManager());
      try {
        await until(async () => (await asked(bus)).length > 0);
        const [request, expired, ...more] = await logged(bus, "interruption.requested");
        assert.deepEqual(more, []);
        assert.equal(expired?.causation_id, request?.id);
        assert.equal(expired?.interruption_policy, "force_stop");
        assert.equal(expired.created_at, due, "as if it had been told in time");
        const [failure, ...others] = await asked(bus);
        assert.deepEqual(others, []);
        assert.equal(failure?.type, "task.failed");
        assert.equal(failure?.causation_id, expired?.id);
      } finally {
        await second.close();
      }
      assert.equal((await asked(bus)).length, 1);
    } finally {
      await coordinator.close();
    }
  });

  test("a resumption without its checkpoint is refused, and the failure names the refusal", async () => {
    await using server = await startNatsServer();
    await using bus = await connectBus({ servers: server.url, name: "test" });
    const coordinator = await run(server, createCoordinator());
    const manager = await run(server, createManager());
    await using boss = await agentOn(server, "agent:boss");
    await using worker = await agentOn(server, "agent:worker");
    try {
      await started(boss, worker);
      const policy = { interruption_policy: "force_stop" } as const;
      await boss.publish({ ...REQUEST, ...policy, payload: {} });
      const resumption = boss.publish({ ...RESUMED, checkpoint_id: "none", payload: {} });
      await assert.rejects(resumption, refusal("checkpoint_missing"));
      await until(async () => (await asked(bus)).length > 0);
      const [failure] = await asked(bus);
      const refusals = await logged(bus, "event.rejected");
      assert.equal(failure?.causation_id, refusals.at(-1)?.id);
      assert.equal(failure?.task_id, "t");
    } finally {
      await manager.close();
      await coordinator.close();
    }
  });

  test("what is asked for comes true: failures, cancellations and what undoes them, live children first", async () => {
    await using server = await startNatsServer();
    await using bus = await connectBus({ servers: server.url, name: "test" });
    const coordinator = await run(server, createCoordinator());
    const manager = await run(server, createManager());
    await using boss = await agentOn(server, "agent:boss");
    await using worker = await agentOn(server, "agent:worker");
    const ends = async (type: string, id: string): Promise<Envelope> => {
      let found: Envelope | undefined;
      await until(async () => {
        found = (await logged(bus, type, "tasks")).find(({ task_id }) => task_id === id);
        return found !== undefined;
      });
      return found as Envelope;
    };
    const requestFor = async (id: string, payload: JsonObject): Promise<void> => {
      await boss.publish({ type: "task.submitted", task_id: id, payload: {} });
      await worker.publish({ type: "task.started", task_id: id, payload: {} });
      const child = { task_id: `${id}_child`, parent_task_id: id };
      await boss.publish({ type: "task.submitted", ...child, payload: {} });
      await boss.publish({ type: "interruption.requested", task_id: id, payload });
    };
    try {
      await requestFor("late", { grace_period_ms: 0 });
      const failed = await ends("task.failed", "late");
      const { code } = (failed.payload as JsonObject).error as JsonObject;
      assert.equal(code, "interruption_timeout");
      await ends("task.cancelled", "late_child");

      await requestFor("over", { grace_period_ms: 60_000 });
      const answer = { task_id: "over", payload: {} };
      await worker.publish({ type: "interruption.acknowledged", ...answer });
      const no = { task_id: "over", payload: { reason: "no more" } };
      await boss.publish({ type: "interruption.cancelled", ...no });
      await ends("task.cancelled", "over");
      await ends("task.cancelled", "over_child");

      const undo = { task_id: "undo", compensation_id: "over" };
      const said = { reason: "half done", description: "take it back" };
      await boss.publish({ type: "compensation.requested", ...undo, payload: said });
      const made = await ends("task.submitted", "undo");
      assert.equal(made.compensation_id, "over");
      await worker.publish({ type: "task.started", task_id: "undo", payload: {} });
      await worker.publish({ type: "compensation.completed", ...undo, payload: {} });
      await ends("task.completed", "undo");
      assert.deepEqual(
        (await asked(bus)).map(({ type, task_id }) => `${type} ${task_id}`),
        ["task.failed late", "task.cancelled over", "task.submitted undo", "task.completed undo"],
      );
    } finally {
      await manager.close();
      await coordinator.close();
    }
  });

  test("the end of a task closes what is open; a replica that only follows knows the same", async () => {
    await using server = await startNatsServer();
    await using bus = await connectBus({ servers: server.url, name: "test" });
    const coordinator = await run(server, createCoordinator());
    const states: ManagerState[] = [];
    const watched = (): ServiceDefinition<ManagerState> => {
      const definition = createManager();
      const { decider } = definition;
      const initial = (): ManagerState => {
        const state = decider.initial();
        states.push(state);
        return state;
      };
      return { ...definition, decider: { ...decider, initial } };
    };
    const leader = await run(server, watched());
    const config = { servers: server.url, version: "0.0.0", logger: pino({ level: "silent" }) };
    const follower = await openService(watched(), config);
    await using boss = await agentOn(server, "agent:boss");
    await using worker = await agentOn(server, "agent:worker");
    try {
      await started(boss, worker);
      await boss.publish({ ...REQUEST, payload: { grace_period_ms: 60_000 } });
      await worker.publish({ type: "task.completed", task_id: "t", payload: {} });
      await until(async () => (await logged(bus, "interruption.cancelled")).length > 0);
      const [closing, ...more] = await logged(bus, "interruption.cancelled");
      assert.deepEqual(more, []);
      assert.ok(closing);
      const { reason, task_state: state } = closing.payload as JsonObject;
      assert.deepEqual([reason, state], ["the task has ended", "completed"]);
      await until(async () => {
        const [first, second] = states.map((one) => JSON.stringify(describeState(one)));
        return first === second;
      });
    } finally {
      await follower.close();
      await leader.close();
      await coordinator.close();
    }
  });
});
