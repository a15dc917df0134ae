import { connectBus } from "@harmovela/bus";
import { Command, Option } from "commander";
import pc from "picocolors";
import { type AuditLine, auditLines } from "../audit-reading.ts";
import { listenForInterruption } from "../interruption.ts";
import { serverOption, toServers } from "../options.ts";
import { ownKey } from "../own-key.ts";
import { plainJson, plainName } from "../terminal.ts";

interface AuditOptions {
  server: string;
  tenant?: string;
  source?: string;
  verdict?: string;
  follow: boolean;
  json: boolean;
}

const VERDICTS = ["accepted", "refused", "derived"];
const VERDICT_WIDTH = "accepted".length;

const HELP = `
Who was allowed or refused what, with an operator's key (HARMOVELA_KEY). What leaves no entry in a log
(questions) is in it too. "derived" is what a service said by itself.

Example:
  $ harmovela audit --tenant acme --verdict refused --follow
`;

export function auditCommand(): Command {
  return new Command("audit")
    .summary("show who was allowed or refused what")
    .description("Show the record of decisions, oldest first, one line for each.")
    .addOption(serverOption())
    .option("--tenant <name>", "only of this tenant")
    .option("--source <agent>", "only what this agent said or asked")
    .addOption(new Option("--verdict <verdict>", "only these").choices(VERDICTS))
    .option("--follow", "go on until Ctrl-C", false)
    .option("--json", "one JSON object for each line", false)
    .addHelpText("after", HELP)
    .action(runAudit);
}

async function runAudit(options: AuditOptions): Promise<void> {
  const { server, follow, json } = options;
  const interruption = listenForInterruption();
  try {
    await using bus = await connectBus({
      servers: toServers(server),
      name: "harmovela audit",
      ...ownKey(),
    });
    for await (const line of auditLines(bus, { follow, stop: interruption.requested })) {
      if (isWanted(line, options)) {
        process.stdout.write(`${json ? plainJson(JSON.stringify(line)) : shown(line)}\n`);
      }
    }
  } finally {
    interruption.dispose();
  }
}

function isWanted(line: AuditLine, { tenant, source, verdict }: AuditOptions): boolean {
  return (
    (tenant === undefined || line.tenant === tenant) &&
    (source === undefined || line.source === source) &&
    (verdict === undefined || line.verdict === verdict)
  );
}

/** What agents have named is escaped. */
function shown(line: AuditLine): string {
  const { at, tenant, source, verdict, type, verb, target, count, by } = line;
  const what = type ?? (verb === undefined ? "" : `asks ${verb}`);
  const parts = [
    pc.dim(at),
    color(verdict)(verdict.padEnd(VERDICT_WIDTH)),
    plainName(tenant),
    target === undefined ? plainName(source) : `${plainName(source)} → ${plainName(target)}`,
    plainName(count === undefined ? what : `${count} more`),
    ...(["task_id", "session_id", "subscription_id", "key", "actor"] as const).flatMap((field) =>
      line[field] === undefined ? [] : [`${field} ${plainName(line[field])}`],
    ),
    ...[line.code, line.check].flatMap((word) =>
      word === undefined ? [] : [pc.red(plainName(word))],
    ),
    ...(by === undefined ? [] : [`by an ${by}`]),
    ...(line.position === undefined ? [] : [pc.dim(`${line.domain}:${line.position}`)]),
  ];
  return parts.filter((part) => part !== "").join("  ");
}

function color(verdict: AuditLine["verdict"]): (text: string) => string {
  return verdict === "refused" ? pc.red : verdict === "accepted" ? pc.green : pc.dim;
}
