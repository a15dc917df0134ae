/** The logs of tasks and of interruptions together, and what must be true of them at rest. */
import assert from "node:assert/strict";
import { type Bus, logStream } from "@harmovela/bus";
import { checkLogs, type Report, type StoredRecord } from "@harmovela/check";
import { eventually } from "./deadline.ts";
import { readRecords } from "./stored-log.ts";

export interface BothLogs {
  tasks: StoredRecord[];
  stops: StoredRecord[];
}

/** What is there now: nothing in one has seen what is not in the other. */
export async function readBoth(bus: Bus): Promise<BothLogs> {
  for (;;) {
    const tasks = await readRecords(bus, "tasks");
    const stops = await readRecords(bus, "interruptions");
    const later = await readRecords(bus, "tasks");
    if (later.length === tasks.length) return { tasks, stops };
  }
}

export async function reportsOf(logs: BothLogs, settled: boolean): Promise<Report[]> {
  const both = [
    { domain: "tasks", records: logs.tasks },
    { domain: "interruptions", records: logs.stops },
  ] as const;
  const reports = await checkLogs(
    both.map(({ domain, records }) => ({
      domain,
      stream: logStream(domain),
      read: () => records,
    })),
    { settled },
  );
  return [...reports.values()];
}

/** What an end of the logs lacks; it may still come. */
const isOpenRule = (rule: string): boolean => rule.endsWith("-open");

/**
 * Waits until nothing is owed in either log; then no rule is broken on any prefix of either, nothing is
 * foreign, and no obligation failed. Resolves with the logs.
 */
export async function untilBothSettled(bus: Bus, ms: number): Promise<BothLogs> {
  let missing: string[] = [];
  const logs = await eventually(ms, "nothing is owed in either log", async () => {
    const read = await readBoth(bus);
    const reports = await reportsOf(read, true);
    missing = reports.flatMap(({ findings }) =>
      findings.flatMap(({ rule, message }) => (isOpenRule(rule) ? [`${rule}: ${message}`] : [])),
    );
    return missing.length === 0 ? read : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${error}: ${missing.slice(0, 5).join("; ")}`);
  });
  for (const report of await reportsOf(logs, true)) {
    assert.deepEqual(report.findings, []);
    assert.equal(report.foreign, 0);
    assert.equal(report.control.intake_gap, undefined, "nothing was skipped in an intake");
    assert.equal(report.control.obligation_failed, undefined);
  }
  return logs;
}
