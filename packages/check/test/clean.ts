import assert from "node:assert/strict";
import { type CheckOptions, checkLog, type Report } from "../src/index.ts";
import { type LogBuilder, streamOf } from "./log-builder.ts";

/** Nothing is found in the log, on no prefix. */
export function clean(log: LogBuilder, options: Partial<CheckOptions> = {}): Report {
  const report = checkLog(log.records(), {
    domain: log.domain,
    stream: streamOf(log.domain),
    settled: true,
    ...options,
  });
  assert.deepEqual(report.findings, []);
  return report;
}
