/** Logs that are read together: each entry is judged by what it had seen. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLogs, type LogToCheck, type StoredRecord } from "../src/index.ts";
import { type LogBuilder, streamOf } from "./log-builder.ts";
import { TwoLogs, WORKER } from "./stop-log.ts";

const rulesOf = async (...logs: LogToCheck[]): Promise<string[]> => {
  const reports = await checkLogs(logs);
  return [...reports].flatMap(([domain, { findings }]) =>
    findings.map(({ rule, seq }) => `${domain} ${rule}@${seq}`),
  );
};

function from(log: LogBuilder, first = 1): LogToCheck {
  const { domain } = log;
  const records = (): StoredRecord[] => log.records().slice(first - 1);
  return { domain, stream: streamOf(domain), lenient: first > 1, read: records };
}

describe("logs read together", () => {
  it("each for itself where another one is not there", async () => {
    const logs = new TwoLogs();
    logs.saved("t");
    logs.tasks.task("progress", "t");
    assert.deepEqual(await rulesOf(from(logs.tasks)), []);
    assert.deepEqual(await rulesOf(from(logs.tasks), from(logs.stops)), ["tasks stopped-work@4"]);
  });

  it("what stands in a log whose beginning is gone is held to what is left of it", async () => {
    const logs = new TwoLogs();
    logs.saved("t");
    logs.tasks.running("u");
    logs.interrupt("u");
    logs.say("acknowledged", "u", "agent:stranger");
    const { last } = logs.tasks;
    logs.say("requested", "nobody", WORKER);
    // Of u everything is left, of t nothing.
    assert.deepEqual(await rulesOf(from(logs.tasks, last - 1), from(logs.stops)), []);
    assert.deepEqual(await rulesOf(from(logs.tasks), from(logs.stops)), [
      "interruptions interruption-owner@6",
      "interruptions interruption-task@7",
    ]);
  });

  it("tell of each entry once, in order, when they are read for themselves", async () => {
    const logs = new TwoLogs();
    logs.saved("t");
    const told: string[] = [];
    const watched = [logs.tasks, logs.stops].map((log) => ({
      ...from(log),
      onRecord: ({ seq }: StoredRecord) => {
        told.push(`${log.domain} ${seq}`);
      },
    }));
    await checkLogs(watched);
    const all = (log: LogBuilder) => log.records().map(({ seq }) => `${log.domain} ${seq}`);
    assert.deepEqual(told, [...all(logs.tasks), ...all(logs.stops)]);
  });

  it("end what they began to read", async () => {
    const logs = new TwoLogs();
    logs.saved("t");
    let open = 0;
    async function* read(log: LogBuilder): AsyncGenerator<StoredRecord> {
      open += 1;
      try {
        yield* log.records();
      } finally {
        open -= 1;
      }
    }
    const both = [logs.tasks, logs.stops].map((log) => ({ ...from(log), read: () => read(log) }));
    await checkLogs(both);
    assert.equal(open, 0);
  });
});
