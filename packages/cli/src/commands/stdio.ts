import { type Bus, connectBus } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { Command } from "commander";
import { CommandFailure } from "../command-failure.ts";
import { DEFAULT_TENANT, otherServerOption, toServers } from "../options.ts";
import { openStack, type Stack } from "../stack/stack.ts";
import { lenientJson, tenantIn } from "../stdio/address.ts";
import { createLineWriter, type LineWriter } from "../stdio/line-writer.ts";
import { readLines } from "../stdio/lines.ts";
import { IntakeSession, LINE_BYTES_MAX, logEnds } from "../stdio/session.ts";

interface StdioOptions {
  store?: string;
  server?: string;
  tenant?: string;
}

const HELP = `
Each line is judged by the real services before the next one is read. stdout carries every log entry
once, in log order (what was accepted as logged, what followed from it, rejections), then the verdict
where it is no entry itself. Lines that are no JSON are refused on stderr. Timers that are due later
show when they happen. Ends with exit code 0 at the end of the input.

Example:
  $ harmovela stdio < session.ndjson
`;

export function stdioCommand(): Command {
  return new Command("stdio")
    .summary("judge NDJSON envelopes from stdin, print the log")
    .description("Judge NDJSON envelopes from stdin through the real intake; print the log on stdout.")
    .option("--store <dir>", "keep the logs there; default a temporary store")
    .addOption(otherServerOption().conflicts("store"))
    .option("--tenant <name>", "tenant; default the first line's tenant_id, else `default`")
    .addHelpText("after", HELP)
    .action((options: StdioOptions) => runStdio(options));
}

async function runStdio(options: StdioOptions): Promise<void> {
  let session: IntakeSession | undefined;
  const out = createLineWriter(process.stdout, () => session?.resume());
  const { server } = options;
  // Where a store already holds logs, only what comes from now on is shown.
  await using place = await openPlace(options);
  const open = (tenant: string): IntakeSession =>
    new IntakeSession(place.bus, {
      tenant,
      from: place.from,
      hasRoom: () => out.hasRoom,
      onOutput: (bytes) => out.write(bytes),
      onRefusedHere: (rejection) => process.stderr.write(`${JSON.stringify(rejection)}\n`),
    });
  if (options.tenant !== undefined) session = open(options.tenant);
  const stopped = place.stack?.failed ?? new Promise<never>(() => {});
  const work = async (): Promise<void> => {
    for await (const { bytes, length } of readLines(untilBroken(process.stdin, out), LINE_BYTES_MAX)) {
      if (session === undefined) {
        const json = bytes === undefined ? undefined : lenientJson(bytes);
        // What cannot be read names no tenant, and needs none to be refused.
        const named = json === undefined ? undefined : (tenantIn(json.value) ?? DEFAULT_TENANT);
        session = named === undefined ? undefined : open(named);
      }
      const judge = session ?? open(DEFAULT_TENANT);
      if (bytes === undefined) judge.refuseTooLong(length);
      else await judge.feed(bytes);
      if (judge !== session) await judge.close();
      if (out.isBroken) return;
      if (!out.hasRoom) await out.flush();
    }
    await session?.settle();
    await out.flush();
  };
  try {
    await Promise.race([work(), stopped]);
  } finally {
    await session?.close();
    process.stdin.destroy();
  }
  if (server !== undefined && place.from.size === 0) {
    throw new CommandFailure("no service has ever run on that server");
  }
}
