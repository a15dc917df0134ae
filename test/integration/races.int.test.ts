/** Two connections race for one task: exactly one wins, and the loser is told who did (cases C1, I1). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Agent, connect, RejectedError, type Verdict } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { openService, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const INTERLEAVINGS = 10_000;
const HANDOFFS = 1_000;
/** Races under way at once. */
const LANES = 64;

type Outcome = { won: true; id: string } | { won: false; error: RejectedError };

async function outcomeOf(sent: Promise<Verdict | { id: string }>): Promise<Outcome> {
  try {
    return { won: true, id: (await sent).id };
  } catch (error) {
    if (error instanceof RejectedError) return { won: false, error };
    throw error;
  }
}

/** Small, seeded and good enough to shuffle who comes first. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function inLanes(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      while (next < count) {
        const index = next;
        next += 1;
        await run(index);
      }
    }),
  );
}

/** One winner; the loser's refusal names its event. */
function assertOneWinner(first: Outcome, second: Outcome, about: string): void {
  assert.notEqual(first.won, second.won, `${about}: one of the two must win`);
  const winner = first.won ? first : second;
  const loser = first.won ? second : first;
  assert.ok(winner.won && !loser.won);
  const named = JSON.stringify(loser.error.details);
  assert.ok(named.includes(winner.id), `${about}: ${loser.error.code} ${named} names ${winner.id}`);
}

describe("races", () => {
  let server: NatsServer;
  let service: RunningService;
  let planner: Agent;
  let worker: Agent;
  before(async () => {
    server = await startNatsServer();
    service = await openService(createCoordinator(), {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
    });
    await service.host.untilLeading();
    planner = await connect({ servers: server.url, agent: "agent:planner", tenant: "acme" });
    worker = await connect({ servers: server.url, agent: "agent:worker", tenant: "acme" });
  });
  after(async () => {
    await Promise.all([planner.close(), worker.close()]);
    await service.close();
    await server.stop();
  });

  test(`C1 complete against cancel, ${INTERLEAVINGS} times from two connections`, async () => {
    const seed = 20_261_130;
    const next = random(seed);
    let firstWon = 0;
    await inLanes(INTERLEAVINGS, async (index) => {
      const task_id = `race_${index}`;
      const event = (type: string, more = {}) => ({ type, task_id, payload: { task_id }, ...more });
      await planner.publish(event("task.submitted", { target: "agent:worker" }));
      await worker.publish(event("task.started"));
      const complete = () => outcomeOf(worker.publish(event("task.completed")));
      const cancel = () => outcomeOf(planner.publish(event("task.cancelled")));
      const isWorkerFirst = next() < 0.5;
      const [a, b] = isWorkerFirst ? [complete(), cancel()] : [cancel(), complete()];
      const [first, second] = await Promise.all([a, b]);
      assertOneWinner(first, second, `seed ${seed}, ${task_id}`);
      if (first.won) firstWon += 1;
    });
    assert.ok(firstWon > 0 && firstWon < INTERLEAVINGS, `who asked first won ${firstWon} times`);
  });

  test(`I1 one task handed to two delegates at once, ${HANDOFFS} times`, async () => {
    await planner.publish({ type: "task.submitted", task_id: "root", payload: {} });
    await planner.publish({ type: "task.started", task_id: "root", payload: {} });
    let byPlanner = 0;
    await inLanes(HANDOFFS, async (index) => {
      const task_id = `handed_${index}`;
      const ask = (agent: Agent, by: string, to: string) =>
        outcomeOf(
          agent.publish({
            type: "delegation.requested",
            task_id,
            target: to,
            delegated_by: by,
            delegated_to: to,
            parent_task_id: "root",
            payload: {},
          }),
        );
      const [first, second] = await Promise.all([
        ask(planner, "agent:planner", "agent:one"),
        ask(worker, "agent:worker", "agent:two"),
      ]);
      assertOneWinner(first, second, task_id);
      if (first.won) byPlanner += 1;
    });
    assert.ok(byPlanner > 0);
  });
});
