import { connectBus, encodeToken } from "@harmovela/bus";
import { Command } from "commander";
import pc from "picocolors";
import { examine } from "../doctor/examine.ts";
import type { Finding } from "../doctor/finding.ts";
import { serverOption, tenantOption, toServers } from "../options.ts";
import { ownKey } from "../own-key.ts";
import { STAND_IN } from "../stdio/address.ts";
import { plainText } from "../terminal.ts";

interface DoctorOptions {
  server: string;
  tenant: string;
  json: boolean;
}

const MARKS = { good: pc.green("✓"), note: pc.yellow("!"), bad: pc.red("✗") } as const;

const HELP = `
Looks at the server, the streams and whether they are as asked for, the services, the clocks and what a
power failure may lose. Changes nothing. Exit code 1 when something is wrong.

Example:
  $ harmovela doctor --server nats://127.0.0.1:4222
`;

export function doctorCommand(): Command {
  return new Command("doctor")
    .alias("status")
    .summary("say what is wrong with a server and its services")
    .description("Say what is right and what is wrong with a server and the services on it.")
    .addOption(serverOption())
    .addOption(tenantOption())
    .option("--json", "print the findings as JSON", false)
    .addHelpText("after", HELP)
    .action(runDoctor);
}

async function runDoctor({ server, tenant, json }: DoctorOptions): Promise<void> {
  await using bus = await connectBus({
    servers: toServers(server),
    name: "harmovela doctor",
    // Services answer the stand-in there, with authentication and without.
    inboxPrefix: `_INBOX.${encodeToken(tenant)}.${encodeToken(STAND_IN)}`,
    ...ownKey(),
  });
  const findings = await examine(bus, { version: bus.serverVersion ?? "", tenant });
  process.stdout.write(json ? `${JSON.stringify(findings)}\n` : findings.map(show).join(""));
  if (findings.some((finding) => finding.is === "bad")) process.exitCode = 1;
}

function show({ is, what, advice }: Finding): string {
  const line = `${MARKS[is]} ${plainText(what)}\n`;
  return advice === undefined ? line : `${line}  ${pc.dim(`→ ${advice}`)}\n`;
}
