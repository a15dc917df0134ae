/** Two say at once what cannot both hold, to two services: one wins, and both logs agree on which. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import type { Envelope } from "@harmovela/envelope";
import { seededRandom } from "../chaos/seeded.ts";
import {
  acknowledged,
  BOSS,
  cancelled,
  requested,
  resumed,
  Stack,
  saved,
  say,
  type Tenant,
  WORKER,
} from "./interruption-support.ts";

/** Of each race; more by the environment. */
const RUNS = Number(process.env.HARMOVELA_RACE_RUNS ?? 100);
/** Races under way at once. */
const LANES = 16;
const SEED = 20_261_130;

interface Outcome {
  isTaken: boolean;
  code: string | undefined;
  details: Record<string, unknown>;
}

async function outcomeOf({ sender }: Tenant, sent: Envelope): Promise<Outcome> {
  const { type, payload } = await sender.send(sent);
  const { code, details = {} } = payload.error ?? {};
  return { isTaken: type === "event.acknowledged", code, details };
}

/** Who goes first, and by how much. */
interface Start {
  isSwapped: boolean;
  leadMs: number;
}

type Race = (id: string, start: Start) => Promise<string>;

/** Longer than a verdict takes, so that each may be the one that comes first. */
const LEAD_MS_MAX = 12;

/** Runs it often, several at once, who goes first left to chance; how often each outcome came. */
async function often(race: Race): Promise<Map<string, number>> {
  const random = seededRandom(SEED);
  const outcomes = new Map<string, number>();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < RUNS) {
      const id = `t${next}`;
      next += 1;
      const start = { isSwapped: random() < 0.5, leadMs: random() * LEAD_MS_MAX };
      const outcome = await race(id, start);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return outcomes;
}

/** Both at once; the outcomes in the order in which they are named. */
async function both(
  tenants: readonly [Tenant, Tenant],
  envelopes: readonly [Envelope, Envelope],
  { isSwapped, leadMs }: Start,
): Promise<readonly [Outcome, Outcome]> {
  const after = async (ms: number, tenant: Tenant, sent: Envelope): Promise<Outcome> => {
    await pass(ms);
    return outcomeOf(tenant, sent);
  };
  return await Promise.all([
    after(isSwapped ? leadMs : 0, tenants[0], envelopes[0]),
    after(isSwapped ? 0 : leadMs, tenants[1], envelopes[1]),
  ]);
}

const winnerIn = ({ details }: Outcome): unknown =>
  (details.winner as { event_id?: unknown } | undefined)?.event_id;

describe("races between interruptions and tasks", () => {
  let stack: Stack;
  before(async () => {
    stack = await Stack.open();
  });
  after(() => stack[Symbol.asyncDispose]());

  const open = async (name: string) =>
    [await stack.tenant(name), await stack.tenant(name)] as const;

  test(`saved against a cancel of the interruption, ${RUNS} times`, async (t) => {
    const pair = await open("saved-cancelled");
    const [worker] = pair;
    const outcomes = await often(async (id, start) => {
      await worker.running(id);
      await worker.given(requested(id), acknowledged(id));
      const end = cancelled(id);
      const [save, cancel] = await both(pair, [saved(id), end], start);
      assert.ok(cancel.isTaken, JSON.stringify(cancel));
      if (save.isTaken) return "saved first";
      assert.equal(save.code, "task_error");
      const by = save.details.settling_by ?? winnerIn(save);
      if (by === end.id) return "cancelled first";
      // What the cancel asks for has come to pass by then.
      const ended = await worker.until("task.cancelled", id);
      assert.deepEqual([ended.id, ended.causation_id], [by, end.id], JSON.stringify(save));
      return "over first";
    });
    await worker.settled();
    t.diagnostic(JSON.stringify([...outcomes]));
  });

  test(`saved against a cancel of the task, ${RUNS} times`, async (t) => {
    const pair = await open("saved-ended");
    const [worker] = pair;
    const outcomes = await often(async (id, start) => {
      await worker.running(id);
      await worker.given(requested(id), acknowledged(id));
      const end = say("task.cancelled", id, { by: BOSS });
      const [save, cancel] = await both(pair, [saved(id), end], start);
      assert.ok(cancel.isTaken, JSON.stringify(cancel));
      if (save.isTaken) return "saved first";
      assert.equal(winnerIn(save), end.id, JSON.stringify(save));
      return "cancelled first";
    });
    await worker.settled();
    t.diagnostic(JSON.stringify([...outcomes]));
  });

  test(`completed against a forced stop, ${RUNS} times`, async (t) => {
    const pair = await open("completed-stopped");
    const [worker] = pair;
    const outcomes = await often(async (id, start) => {
      await worker.running(id);
      const stop = requested(id, {}, { interruption_policy: "force_stop" });
      const done = say("task.completed", id);
      const [complete, interrupt] = await both(pair, [done, stop], start);
      if (!interrupt.isTaken) {
        assert.ok(complete.isTaken);
        assert.equal(winnerIn(interrupt), done.id, JSON.stringify(interrupt));
        return "completed, no stop";
      }
      // It was taken before the service had seen the end, which closes it.
      if (complete.isTaken) {
        const closed = await worker.until("interruption.cancelled", id);
        assert.equal(closed.causation_id, done.id);
        return "completed, the stop closed";
      }
      assert.equal(complete.details.interruption, stop.id, JSON.stringify(complete));
      return "stopped";
    });
    await worker.settled();
    t.diagnostic(JSON.stringify([...outcomes]));
  });

  test(`resumed against the end of the session, ${RUNS} times`, async (t) => {
    const pair = await open("resumed-closed");
    const [worker] = pair;
    const outcomes = await often(async (id, start) => {
      const session_id = `session-${id}`;
      const about = { session_id, payload: { session_id, version: "0.2" } };
      await worker.given(
        { ...say("session.opened", id, { target: "harness:any", ...about }), task_id: undefined },
        say("task.submitted", id, { by: BOSS, target: WORKER }),
        say("task.started", id, { session_id }),
        requested(id),
        acknowledged(id, { session_id }),
        saved(id, "ck", { session_id }),
      );
      const end = { ...say("session.closed", id, about), task_id: undefined };
      const go = resumed(id, "ck", { by: WORKER, session_id });
      const [resume, close] = await both(pair, [go, end], start);
      assert.ok(close.isTaken, JSON.stringify(close));
      if (!resume.isTaken) {
        assert.equal(resume.code, "session_closed");
        await worker.given(resumed(id, "ck"), say("task.completed", id));
        return "closed first";
      }
      // Whoever resumed it is gone: it is to stop again, in any process of its agent.
      const again = await worker.until(
        "interruption.requested",
        id,
        ({ causation_id }) => causation_id === end.id,
      );
      await worker.given(
        acknowledged(id, { causation_id: again.id }),
        saved(id, "ck2"),
        resumed(id, "ck2", { by: WORKER }),
        say("task.completed", id),
      );
      return "resumed first";
    });
    await worker.settled();
    t.diagnostic(JSON.stringify([...outcomes]));
  });

  test(`two resumes from different checkpoints, ${RUNS} times`, async (t) => {
    const pair = await open("two-resumes");
    const [worker] = pair;
    const outcomes = await often(async (id, start) => {
      await worker.stopped(id);
      await worker.given(resumed(id), requested(id), acknowledged(id), saved(id, "ck_new"));
      const mine = resumed(id);
      const theirs = resumed(id, "ck_new", { by: WORKER });
      const [one, other] = await both(pair, [mine, theirs], start);
      assert.notEqual(one.isTaken, other.isTaken, "one of the two must win");
      const [winner, loser] = one.isTaken ? [mine, other] : [theirs, one];
      assert.equal(loser.code, "task_error");
      assert.deepEqual(loser.details.winner, {
        event_id: winner.id,
        type: "interruption.resumed",
        checkpoint_id: winner.checkpoint_id,
      });
      await worker.given(say("task.completed", id));
      return one.isTaken ? "the older" : "the newer";
    });
    await worker.settled();
    t.diagnostic(JSON.stringify([...outcomes]));
  });
});
