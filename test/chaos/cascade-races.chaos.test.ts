/** Somebody else wants an end too while a cascade is killed again and again. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import type { KillOrder } from "./kill-order.ts";
import { startRecorder } from "./recording.ts";
import { envelope, Sender } from "./sender.ts";
import {
  assertAsAnswered,
  assertGreen,
  assertSeenIsStored,
  controlsOf,
  eventsOf,
  readRecords,
  type StoredEvent,
} from "./stored-log.ts";
import { plant, shapeTree } from "./task-tree.ts";

const TENANT = "acme";
const END_MS = 240_000;
/** grandparent (owner agent:grandparent) over root (owner agent:root) over the rest; and an aunt's branch. */
interface Shape {
  /** Steps that a process lives for. */
  steps: number;
  /** Tasks from the root down, and in the aunt's branch. */
  root: number;
  aunt: number;
}

/** `npm run cascades`: 200, as large as the tree that nobody interferes with, in some minutes. */
const ROOT = Number(process.env.HARMOVELA_CHAOS_TREE ?? 20);

/** Killed after every single step; and after ten, several of which were under way at once. */
const SHAPES: Shape[] = [
  { steps: 1, root: ROOT, aunt: Math.ceil(ROOT / 6) },
  { steps: 10, root: 120, aunt: 20 },
];

/** So many steps, then some other traffic or none, then the end. */
const pointsOf = (n: number): KillOrder[] => [
  { of: "step", n, point: "later", more: 3 },
  { of: "step", n, point: "later", more: 8 },
  { of: "step", n, point: "published" },
];

interface Scene {
  sender: Sender;
  fleet: Fleet;
  /** Task ids that have been cancelled so far, as a plain subscriber saw it. */
  cancelled(): number;
  /** Resolves when so many have been. */
  untilCancelled(count: number): Promise<void>;
  close(): Promise<{ records: Awaited<ReturnType<typeof readRecords>>; own: StoredEvent[] }>;
}

async function stage(
  { steps, root, aunt }: Shape,
  work: (scene: Scene) => Promise<void>,
): Promise<string> {
  const points = pointsOf(steps);
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: 600, isLeaseFreed: true });
  {
    await using planter = fleet.start();
    await planter.until("leading");
    await plant(sender, [
      { id: "grandparent", parent: undefined, owner: "agent:grandparent" },
      ...shapeTree("root", root, "grandparent"),
      ...shapeTree("aunt", aunt, "grandparent"),
    ]);
  }
  await using recorder = await startRecorder({
    url: server.url,
    tenants: ["beta"],
    agents: 2,
    seed: 2,
    mix: "plain",
  });
  const startedAt = performance.now();
  let orders = 0;
  fleet.keep(3, () => {
    orders += 1;
    const point = points[orders % points.length];
    return point && { ...point, tenant: TENANT };
  });
  const cancelled = () =>
    recorder.seen.filter(
      ({ subject }) =>
        subject.startsWith(`hv.${TENANT}.ev.`) && subject.endsWith(".task.cancelled"),
    ).length;
  let figures = "";
  await work({
    sender,
    fleet,
    cancelled,
    untilCancelled: async (count) => {
      await eventually(END_MS, `${count} tasks are cancelled`, () =>
        cancelled() >= count ? true : undefined,
      );
    },
    close: async () => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      const { sent } = await recorder.stop();
      const records = await readRecords(sender.bus);
      const report = assertGreen(records);
      assertAsAnswered(records, recorder.verdicts);
      assertSeenIsStored(records, recorder.seen);
      assert.equal(recorder.verdicts.length, sent);
      assert.deepEqual(fleet.failures, []);
      figures = `${server.version}: ${fleet.killed} kills in ${seconds} s, ${report.entries} entries`;
      return { records, own: eventsOf(records).filter(({ tenant }) => tenant === TENANT) };
    },
  });
  return figures;
}

const endOf = (own: StoredEvent[], task: string): StoredEvent[] =>
  own.filter(({ envelope: { type, task_id } }) => type === "task.cancelled" && task_id === task);

/** Each task ends once, cancelled, and after all that hang on it. */
function assertAllCancelledOnce(own: StoredEvent[], { root, aunt }: Shape): void {
  const tasks = [
    "grandparent",
    ...shapeTree("root", root).map(({ id }) => id),
    ...shapeTree("aunt", aunt).map(({ id }) => id),
  ];
  for (const task of tasks) assert.equal(endOf(own, task).length, 1, task);
  const positionOf = (task: string) => endOf(own, task)[0]?.seq ?? 0;
  assert.ok(tasks.every((task) => positionOf(task) <= positionOf("grandparent")));
}

/** No process made more steps than it was to live for. */
function assertShortLives(own: StoredEvent[], { steps }: Shape): void {
  const made = new Map<number, number>();
  for (const { cause, epoch } of own) {
    if (cause.startsWith("owed:")) made.set(epoch, (made.get(epoch) ?? 0) + 1);
  }
  assert.ok(Math.max(...made.values()) <= steps, "no process made more steps than it had");
}

for (const shape of SHAPES) {
  describe(`races with a cascade, killed after ${shape.steps} steps`, () => {
    test("a cancel of the grandparent and a completion of the root in mid cascade", async (t) => {
      const figures = await stage(
        shape,
        async ({ sender, fleet, untilCancelled, cancelled, close }) => {
          const cancelRoot = envelope("agent:root", "task.cancelled", "root");
          const first = sender.send(cancelRoot, END_MS);
          await untilCancelled(2 * shape.steps);
          const cancelGrandparent = envelope("agent:grandparent", "task.cancelled", "grandparent");
          const second = sender.send(cancelGrandparent, END_MS);
          const late = sender.send(envelope("agent:root", "task.completed", "root"), END_MS);
          const [answerRoot, answerGrandparent, refused] = await Promise.all([first, second, late]);
          const midway = cancelled();
          const lateToo = await sender.send(
            envelope("agent:grandparent", "task.completed", "grandparent"),
            END_MS,
          );
          await untilCancelled(1 + shape.root + shape.aunt);
          assert.ok(midway < shape.root, `answered after ${midway} steps`);
          const { records, own } = await close();

          assert.equal(answerRoot.payload.pending, true);
          assert.equal(answerGrandparent.type, "event.acknowledged");
          assert.equal(answerGrandparent.payload.pending, true);
          assertRefusedBy(refused, cancelRoot);
          assert.equal(lateToo.type, "event.rejected");
          assertAllCancelledOnce(own, shape);
          assert.equal(endOf(own, "root")[0]?.envelope.id, cancelRoot.id);
          assert.equal(endOf(own, "grandparent")[0]?.envelope.id, cancelGrandparent.id);
          const rootEnd = endOf(own, "root")[0]?.seq ?? 0;
          const begun = controlsOf(records, "begun").map(({ seq }) => seq);
          assert.equal(begun.length, 2);
          assert.ok(begun.every((seq) => seq < rootEnd));
          assertShortLives(own, shape);
          assert.ok(fleet.killed >= 10, `${fleet.killed} kills`);
        },
      );
      t.diagnostic(figures);
    });

    test("the same with cancel requests: what does not end by itself is cancelled after the grace", async (t) => {
      const figures = await stage(shape, async ({ sender, fleet, untilCancelled, close }) => {
        const asked = envelope("agent:planner", "task.cancel.requested", "root", {
          target: "agent:root",
          payload: { grace_period_ms: 4_000 },
        });
        const first = sender.send(asked, END_MS);
        await untilCancelled(1);
        const above = envelope("agent:planner", "task.cancel.requested", "grandparent", {
          target: "agent:grandparent",
          payload: { grace_period_ms: 1_000 },
        });
        const leaf = envelope("agent:root-4", "task.progress", `root-${shape.root - 1}`);
        const [answer, answerAbove, refused] = await Promise.all([
          first,
          sender.send(above, END_MS),
          sender.send(envelope("agent:root", "task.completed", "root"), END_MS),
          sender.send(leaf, END_MS),
        ]);
        await untilCancelled(1 + shape.root + shape.aunt);
        const { own } = await close();
        // The one whose first verdict was lost is told that it is a duplicate.
        assert.ok(answer.payload.pending || answer.payload.duplicate);
        assert.equal(answer.type, "event.acknowledged");
        assert.equal(answerAbove.type, "event.acknowledged");
        assert.equal(refused.type, "event.rejected");
        assert.equal(refused.payload.error?.code, "task_error");
        assertAllCancelledOnce(own, shape);
        const ends = endOf(own, "root").map(({ envelope: { payload } }) => payload);
        assert.deepEqual(ends, [{ ...(ends[0] as object), forced: true }]);
        assert.ok(fleet.killed >= 8, `${fleet.killed} kills`);
      });
      t.diagnostic(figures);
    });
  });
}

function assertRefusedBy(
  answer: { type: string; payload: { error?: { code: string; details?: object } } },
  winner: Envelope,
): void {
  assert.equal(answer.type, "event.rejected");
  assert.equal(answer.payload.error?.code, "task_error");
  const details = answer.payload.error?.details as { settling_by?: string };
  assert.equal(details.settling_by, winner.id);
}
