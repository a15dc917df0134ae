/** Random good logs are clean; the same logs with one fault are not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Checker, checkLog, createChecker, type StoredRecord } from "../src/index.ts";
import { type Item, STREAM, stamp } from "./log-builder.ts";
import { randomLog } from "./random-log.ts";

const OPTIONS = { domain: "tasks", stream: STREAM, settled: true } as const;

const number = fc.nat({ max: 10_000 });
const logs = fc.array(fc.tuple(number, number), { minLength: 20, maxLength: 150 }).map(randomLog);
const rulesOf = (records: readonly StoredRecord[]): string[] =>
  checkLog(records, OPTIONS).findings.map(({ rule }) => rule);

/** The entries with one taken out, and rewritten with right stamps. */
const without = (items: readonly Item[], at: number): StoredRecord[] =>
  stamp(items.toSpliced(at, 1));

const isForeign = (item: Item): boolean => item.instead?.headers?.["Hv-Epoch"] !== undefined;

function planIdOf({ body }: Item): unknown {
  const plan = body?.plan;
  return typeof plan === "object" && plan !== null && "id" in plan ? plan.id : undefined;
}

/** Whether a log without this entry breaks a rule for certain. */
function mustBeWritten(items: readonly Item[], at: number): boolean {
  const item = items[at];
  if (item === undefined || isForeign(item)) return false;
  // Without its begun entry a time-out whose tree ended by itself is just a time-out.
  if (item.kind === "begun") return item.cause.startsWith("in:");
  const { envelope } = item;
  if (envelope === undefined) return false;
  const later = items.slice(at + 1).filter((other) => !isForeign(other));
  if (envelope.type === "task.submitted") {
    return later.some(
      (other) => other.tenant === item.tenant && other.envelope?.task_id === envelope.task_id,
    );
  }
  const isPlanned = items.some((other) => `owed:${planIdOf(other)}` === item.cause);
  // A forced cancel is missed once something later shows that its time had come.
  const isForced = JSON.stringify(envelope.payload).includes('"forced":true');
  return item.cause.startsWith("owed:") && (isPlanned || (isForced && later.length > 0));
}

describe("properties", () => {
  it("nothing is found in a good log, on no prefix", () => {
    fc.assert(
      fc.property(logs, (log) => {
        const checker: Checker = createChecker(OPTIONS);
        for (const record of log.records()) assert.deepEqual(checker.push(record), []);
        assert.deepEqual(checker.end(), []);
        assert.equal(checker.report.plansOpen, 0);
      }),
      { numRuns: 150 },
    );
  });

  it("a stored entry that is lost, doubled or swapped is found", () => {
    fc.assert(
      fc.property(logs, number, (log, pick) => {
        const records = log.records();
        const at = pick % (records.length - 1);
        const [one, two] = [records[at], records[at + 1]];
        assert.ok(one && two);
        assert.notDeepEqual(rulesOf(records.toSpliced(at, 1)), []);
        assert.notDeepEqual(rulesOf(records.toSpliced(at, 0, one)), []);
        assert.notDeepEqual(rulesOf(records.toSpliced(at, 2, two, one)), []);
      }),
      { numRuns: 100 },
    );
  });

  it("a writer that leaves out what it must write is found, though its stamps are right", () => {
    fc.assert(
      fc.property(logs, (log) => {
        const { items } = log;
        for (const [at, item] of items.entries()) {
          if (!mustBeWritten(items, at)) continue;
          const found = rulesOf(without(items, at));
          assert.notDeepEqual(found, [], `${item.kind ?? item.envelope?.type} at ${at} left out`);
        }
      }),
      { numRuns: 25 },
    );
  });

  it("a writer that writes an event twice is found, though its stamps are right", () => {
    fc.assert(
      fc.property(logs, number, (log, pick) => {
        const { items } = log;
        const at = pick % items.length;
        const item = items[at];
        if (item?.envelope === undefined || isForeign(item)) return;
        assert.notDeepEqual(rulesOf(stamp(items.toSpliced(at, 0, item))), []);
      }),
      { numRuns: 200 },
    );
  });

  it("a writer that swaps two inputs, or two events of one plan, is found", () => {
    fc.assert(
      fc.property(logs, (log) => {
        const { items } = log;
        for (let at = 0; at + 1 < items.length; at += 1) {
          const [one, two] = [items[at], items[at + 1]];
          if (one?.envelope === undefined || two?.envelope === undefined) continue;
          if (isForeign(one) || isForeign(two)) continue;
          const areInputs = one.cause.startsWith("in:") && two.cause.startsWith("in:");
          const isEnd = two.cause === one.cause && two.cause === `owed:${two.envelope.id}`;
          if (!areInputs && !isEnd) continue;
          const swapped = stamp(items.toSpliced(at, 2, { ...two, at: one.at }, one));
          assert.notDeepEqual(rulesOf(swapped), []);
        }
      }),
      { numRuns: 25 },
    );
  });

  it("no bytes make it throw", () => {
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.json({ maxDepth: 3 }),
      fc.constantFrom("{}", "[]", "null", '{"plan":{"id":"a","kind":"b","envelope":{}}}'),
    );
    const subject = fc.oneof(
      fc.string({ maxLength: 30 }),
      fc.constantFrom(
        "hv.acme.log.tasks.agent:a.-.task.submitted",
        "hv.acme.ctl.tasks.begun",
        "hv.-.ctl.tasks.epoch",
        "hv.-.ctl.tasks.position",
        "hv.%FF.log.tasks.a.b.c",
        "hv.acme.log.tasks",
      ),
    );
    const header = fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.constantFrom("1", "in:1", "owed:", "in:9999999999999999", "beliefs:1,", "-1"),
    );
    const record = fc.record({
      seq: fc.integer({ min: 1, max: 9 }),
      time: fc.integer(),
      subject,
      headers: fc.record({
        "Hv-Epoch": fc.constantFrom("1", "2", "x"),
        "Hv-Cause": header,
        "Hv-At": header,
        "Hv-Seen": header,
      }),
      data: fc.oneof(text, fc.uint8Array({ maxLength: 20 })),
    });
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), fc.boolean(), (records, lenient) => {
        const report = checkLog(records, { ...OPTIONS, lenient });
        assert.equal(report.entries, records.length);
      }),
      { numRuns: 300 },
    );
  });
});
