/** P2 of the architecture at its hardest: a service that lives for one step of a cascade at a time. */
import assert from "node:assert/strict";
import { test } from "node:test";
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
} from "./stored-log.ts";
import { plant, shapeTree } from "./task-tree.ts";

const TENANT = "acme";
/** Each costs a process; `npm run cascades` takes 200. */
const TASKS = Number(process.env.HARMOVELA_CHAOS_TREE ?? 40);
/** On a machine that does nothing else it takes a small part of it. */
const CASCADE_MS = 400_000;

/** Each makes exactly one step, and ends at another moment of it. */
const POINTS: Omit<KillOrder, "tenant">[] = [
  { of: "step", n: 1, point: "published" },
  { of: "step", n: 1, point: "acked" },
  { of: "step", n: 2, point: "before" },
  { of: "step", n: 1, point: "later", more: 4 },
];

test(`kill -9 after every single step of a cascade over ${TASKS} tasks`, async (t) => {
  const startedAt = performance.now();
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: 600, isLeaseFreed: true });
  const tree = shapeTree("root", TASKS);
  {
    await using planter = fleet.start();
    await planter.until("leading");
    await plant(sender, tree);
  }
  await using recorder = await startRecorder({
    url: server.url,
    tenants: ["beta", "gamma"],
    agents: 3,
    seed: 1,
    mix: "plain",
  });
  const plantedAt = performance.now();
  const cancel = envelope("agent:root", "task.cancelled", "root");
  // The first process ends between the entry that begins the cascade and its acknowledgement.
  const beginner = fleet.start({ of: "begun", n: 1, point: "published", tenant: TENANT });
  await beginner.until("leading");
  const answered = sender.send(cancel, CASCADE_MS);
  await beginner.ended;
  let orders = 0;
  fleet.keep(4, () => {
    orders += 1;
    const point = POINTS[orders % POINTS.length] ?? POINTS[0];
    return point && { ...point, tenant: TENANT };
  });
  const answer = await answered;
  assert.equal(answer.type, "event.acknowledged");
  await eventually(CASCADE_MS, "the cascade has ended", () =>
    recorder.seen.some(({ subject }) =>
      subject.startsWith(`hv.${TENANT}.ev.tasks.agent:root.-.task.cancelled`),
    )
      ? true
      : undefined,
  );
  const cascadeMs = performance.now() - plantedAt;
  const { sent, resent } = await recorder.stop();
  const records = await readRecords(sender.bus);
  const report = assertGreen(records);
  assertAsAnswered(records, recorder.verdicts);
  const seen = assertSeenIsStored(records, recorder.seen);
  assert.ok(recorder.verdicts.every(({ verdict }) => verdict === "event.acknowledged"));
  assert.equal(recorder.verdicts.length, sent);

  const begun = controlsOf(records, "begun");
  assert.equal(begun.length, 1);
  const begunAt = begun[0]?.seq ?? 0;
  assert.equal(answer.payload.cursor, `HV_LOG_TASKS:${begunAt}`);
  assert.equal(answer.payload.pending, true);
  const steps = eventsOf(records).filter(
    ({ tenant, cause }) => tenant === TENANT && cause.startsWith("owed:"),
  );
  assert.equal(steps.length, TASKS);
  assert.deepEqual(
    new Set(steps.map(({ envelope }) => envelope.task_id)),
    new Set(tree.map(({ id }) => id)),
  );
  assert.equal(steps.at(-1)?.envelope.id, cancel.id, "the root ends last, under the agent's id");
  assert.equal(
    new Set(steps.map(({ epoch }) => epoch)).size,
    TASKS,
    "no process made more than one step",
  );
  const last = steps.at(-1)?.seq ?? 0;
  const between = eventsOf(records).filter(
    ({ tenant, seq }) => tenant !== TENANT && seq > begunAt && seq < last,
  );
  assert.ok(between.length > 0, "other tenants were judged in between");
  assert.ok(fleet.killed >= TASKS - 1, `${fleet.killed} kills`);
  assert.deepEqual(fleet.failures, []);
  t.diagnostic(
    `${server.version}: ${fleet.killed + 1} kills in ${(cascadeMs / 1000).toFixed(1)} s, ` +
      `${report.entries} entries (${report.control.epoch} epochs), ${between.length} of others in between, ` +
      `others sent ${sent} (${resent} again), cancel sent again ${sender.resent} times, seen ${seen}, ` +
      `whole test ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
  );
});
