/**
 * Fuzzes the targets, one after the other. What it finds is made small and stored beside the tests, which give it
 * to the target again from then on; exit code 1.
 *
 *   npm run fuzz                                   every target, ten minutes each
 *   npm run fuzz -- --target intake --minutes 1    one target
 *   npm run fuzz -- --seed 7 --executions 5000     as many inputs, the same ones each time
 */
import { parseArgs } from "node:util";
import { storeCase } from "./cases.ts";
import { Coverage } from "./coverage.ts";
import { fuzz, type Report } from "./fuzz-run.ts";
import { TARGETS } from "./targets.ts";

const MS_PER_MINUTE = 60_000;
const PROGRESS_MS = 30_000;
const TOLD_MAX = 12;

const { values } = parseArgs({
  options: {
    target: { type: "string" },
    minutes: { type: "string", default: "10" },
    executions: { type: "string" },
    seed: { type: "string" },
  },
});
const seed = Number(values.seed ?? 1 + Math.floor(Math.random() * 1e9));
const executions = Number(values.executions ?? Number.POSITIVE_INFINITY);
const ms = Number(values.minutes) * MS_PER_MINUTE;
const chosen = TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0 || ![seed, ms].every(Number.isFinite) || Number.isNaN(executions)) {
  const names = TARGETS.map(({ name }) => name).join(", ");
  process.stderr.write(`usage: --target <${names}> --minutes n --executions n --seed n\n`);
  process.exit(2);
}

function say(report: Report): void {
  const { target, executions: done, sessions, outcomes, corpus, blocks, findings } = report;
  const seconds = (report.ms / 1_000).toFixed(0);
  process.stdout.write(
    `${target}: ${done} executions in ${seconds} s, ${sessions} sessions, ${outcomes} outcomes, ` +
      `${corpus} inputs kept, ${blocks} blocks, ${findings.length} findings\n`,
  );
}

let isSound = true;
for (const target of chosen) {
  process.stdout.write(`${target.name}: seed ${seed}\n`);
  const coverage = new Coverage();
  await coverage.start();
  let toldAt = performance.now();
  const onProgress = (report: Report): void => {
    if (performance.now() - toldAt < PROGRESS_MS) return;
    toldAt = performance.now();
    say(report);
  };
  const onFound = (what: string): void => {
    process.stdout.write(`${target.name}: ${what}; it is being made smaller\n`);
  };
  const report = await fuzz(target, { seed, executions, ms, coverage, onProgress, onFound });
  await coverage.stop();
  say(report);
  for (const [outcome, count] of report.tally.slice(0, TOLD_MAX)) {
    process.stdout.write(`  ${String(count).padStart(8)}  ${outcome}\n`);
  }
  for (const finding of report.findings) {
    process.stdout.write(`FOUND ${finding.what}\n  ${storeCase(finding)}\n`);
    isSound = false;
  }
}
process.exitCode = isSound ? 0 : 1;
