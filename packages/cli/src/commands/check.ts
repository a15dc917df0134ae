import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { connectBus } from "@harmovela/bus";
import {
  checkLogs,
  formatRecord,
  type LogToCheck,
  type Report,
  type StoredRecord,
} from "@harmovela/check";
import type { Domain } from "@harmovela/envelope";
import { Command } from "commander";
import pc from "picocolors";
import { CommandFailure } from "../command-failure.ts";
import { type LogSource, logOfFile, logsOfServer } from "../log-reading.ts";
import { serverOption, toServers } from "../options.ts";
import { ownKey } from "../own-key.ts";
import { plainText } from "../terminal.ts";

interface CheckOptions {
  server: string;
  file?: string[];
  save?: string;
  settled: boolean;
  json: boolean;
}

/** Findings shown for each rule; all are counted. */
const SHOWN_MAX = 10;

const HELP = `
Reads every log to its present end and verifies every rule on every prefix, and those between logs by what
each entry had seen of the others. Writes nothing to the server. Exit code 1 when a rule is broken.

Example:
  $ harmovela check --server nats://127.0.0.1:4222
`;

export function checkCommand(): Command {
  return new Command("check")
    .summary("verify every rule on the logs of a server or of files")
    .description("Verify every rule on every prefix of the logs of a server, or of files.")
    .addOption(serverOption())
    .option("--file <path...>", "logs that --save wrote, instead of a server")
    .option("--save <folder>", "also write each log there, as <stream>.ndjson")
    .option("--settled", "the system is at rest: no cascade may be open", false)
    .option("--json", "print the reports as JSON", false)
    .addHelpText("after", HELP)
    .action(runCheck);
}

async function runCheck(options: CheckOptions): Promise<void> {
  const { file: files, server } = options;
  if (files !== undefined) {
    const sources = await Promise.all(files.map((path) => logOfFile(path)));
    return report(await checked(sources, options), options);
  }
  await using bus = await connectBus({
    servers: toServers(server),
    name: "harmovela check",
    ...ownKey(),
  });
  const sources = await logsOfServer(bus);
  if (sources.length === 0) throw new CommandFailure("that server holds no logs");
  report(await checked(sources, options), options);
}

async function checked(
  sources: readonly LogSource[],
  { save, settled }: CheckOptions,
): Promise<[string, Report][]> {
  const copies = new Map<Domain, WriteStream>();
  const logs = sources.map((source): LogToCheck => {
    if (save === undefined) return source;
    const copy = createWriteStream(`${save}/${source.stream}.ndjson`);
    copies.set(source.domain, copy);
    return { ...source, onRecord: (record) => write(copy, record) };
  });
  const reports = await checkLogs(logs, { settled });
  for (const copy of copies.values()) {
    copy.end();
    await once(copy, "finish");
  }
  return sources.flatMap(({ domain, stream }) => {
    const found = reports.get(domain);
    return found === undefined ? [] : [[stream, found] satisfies [string, Report]];
  });
}

async function write(copy: WriteStream, record: StoredRecord): Promise<void> {
  if (!copy.write(`${formatRecord(record)}\n`)) await once(copy, "drain");
}

function report(reports: readonly [string, Report][], { json }: CheckOptions): void {
  const broken = reports.filter(([, { findings }]) => findings.length > 0);
  if (json) process.stdout.write(`${JSON.stringify(Object.fromEntries(reports))}\n`);
  else for (const [stream, found] of reports) process.stdout.write(show(stream, found));
  if (broken.length > 0) process.exitCode = 1;
}

function show(stream: string, found: Report): string {
  const { entries, events, refusals, tenants, tasks, liveTasks, plansOpen, foreign } = found;
  const { interruptions, openInterruptions } = found;
  const facts = [
    `${entries} entries`,
    `${events} events (${refusals} refusals)`,
    `${tenants} tenants`,
    ...(tasks > 0 ? [`${tasks} tasks, ${liveTasks} live`] : []),
    ...(interruptions > 0 ? [`${interruptions} interruptions, ${openInterruptions} open`] : []),
    ...(plansOpen > 0 ? [`${plansOpen} cascades under way`] : []),
    ...(foreign > 0 ? [`${foreign} foreign messages`] : []),
  ];
  const isGood = found.findings.length === 0;
  const lines = [`${isGood ? pc.green("ok") : pc.red("BROKEN")} ${stream}: ${facts.join(", ")}`];
  for (const [rule, count] of Object.entries(found.findingsByRule)) {
    lines.push(`  ${pc.bold(rule)}: ${count}`);
    const shown = found.findings.filter((finding) => finding.rule === rule).slice(0, SHOWN_MAX);
    for (const { seq, message, taskId } of shown) {
      const task = taskId === undefined ? "" : ` (task ${taskId})`;
      lines.push(plainText(`    at ${seq}: ${message}${task}`));
    }
    if (count > shown.length) lines.push(`    … and ${count - shown.length} more`);
  }
  return `${lines.join("\n")}\n`;
}
