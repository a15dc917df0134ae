import { Command } from "commander";
import { CommandFailure } from "../command-failure.ts";
import { exitCodeOf, listenForInterruption } from "../interruption.ts";
import { DEFAULT_TENANT, otherServerOption } from "../options.ts";
import { isTenant, lenientJson, tenantIn } from "../stdio/address.ts";
import { createLineWriter, type LineWriter } from "../stdio/line-writer.ts";
import { type InputLine, readLines } from "../stdio/lines.ts";
import type { PacedInput } from "../stdio/paced-input.ts";
import { openPlace, type Place } from "../stdio/place.ts";
import { LINE_BYTES_MAX, refusalOfBytes, refusalOfLength } from "../stdio/refusal-here.ts";
import { IntakeSession } from "../stdio/session.ts";
import { openStandardInput } from "../stdio/standard-input.ts";

interface StdioOptions {
  store?: string;
  server?: string;
  tenant?: string;
}

const HELP = `
Each line is judged by the real services before the next one is read. stdout carries every log entry
once, in log order (what was accepted as logged, what followed from it, rejections), then the verdict
where it is no entry itself. Lines that are no JSON are refused on stderr. Timers that are due later
show when they happen and are not waited for. Exit code 0 at the end of the input.

Example:
  $ harmovela stdio < events.ndjson
`;

export function stdioCommand(): Command {
  return new Command("stdio")
    .summary("judge NDJSON envelopes from stdin, print the log")
    .description(
      "Judge NDJSON envelopes from stdin through the real intake; print the log on stdout.",
    )
    .addOption(otherServerOption().conflicts("store"))
    .option("--store <dir>", "keep the logs there; default a temporary store")
    .option("--tenant <name>", "tenant; default the first line's tenant_id, else `default`")
    .addHelpText("after", HELP)
    .action(runStdio);
}

async function runStdio(options: StdioOptions): Promise<void> {
  if (options.tenant !== undefined && !isTenant(options.tenant)) {
    throw new CommandFailure("no tenant can have that name", 2);
  }
  const input = openStandardInput();
  const interruption = listenForInterruption();
  const place = await openPlace(options);
  const stdio = new Stdio(place, input, options.tenant);
  try {
    const signal = await Promise.race([stdio.run(), place.failed, interruption.requested]);
    if (signal !== undefined) process.exitCode = exitCodeOf(signal);
  } finally {
    await stdio.close();
    await place.close();
    interruption.dispose();
  }
}

/** Reads lines until their end, or until nobody reads what comes of them. */
class Stdio {
  readonly #place: Place;
  readonly #input: PacedInput;
  readonly #out: LineWriter;
  #session: IntakeSession | undefined;

  constructor(place: Place, input: PacedInput, tenant: string | undefined) {
    this.#place = place;
    this.#input = input;
    this.#out = createLineWriter(process.stdout, () => {
      if (this.#out.isBroken) process.stdin.destroy();
      this.#session?.resume();
    });
    if (tenant !== undefined) this.#session = this.#open(tenant);
  }

  async run(): Promise<undefined> {
    try {
      for await (const line of readLines(this.#input, LINE_BYTES_MAX)) {
        await this.#judge(line);
        if (this.#out.isBroken) return;
        if (!this.#out.hasRoom) await this.#out.flush();
      }
    } catch (error) {
      // A broken pipe ends the input as well; that is how a pipeline ends.
      if (!this.#out.isBroken) throw error;
      return;
    }
    await this.#session?.settle();
    await this.#out.flush();
  }

  async close(): Promise<void> {
    process.stdin.destroy();
    await this.#session?.close();
  }

  async #judge({ bytes, length }: InputLine): Promise<void> {
    const json = bytes === undefined ? undefined : lenientJson(bytes);
    if (bytes === undefined) refuseOnStderr(refusalOfLength(length));
    else if (json === undefined) refuseOnStderr(refusalOfBytes(bytes));
    else {
      this.#session ??= this.#open(tenantIn(json.value) ?? DEFAULT_TENANT);
      await this.#session.feed(bytes, json.value);
    }
  }

  #open(tenant: string): IntakeSession {
    return new IntakeSession(this.#place.bus, {
      tenant,
      from: this.#place.from,
      hasRoom: () => this.#out.hasRoom,
      onOutput: (bytes) => this.#out.write(bytes),
      onRefusedHere: refuseOnStderr,
    });
  }
}

function refuseOnStderr(rejection: object): void {
  process.stderr.write(`${JSON.stringify(rejection)}\n`);
}
