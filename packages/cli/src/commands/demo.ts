import { Command, InvalidArgumentError } from "commander";
import pc from "picocolors";
import { Board } from "../demo/board.ts";
import { tellStory } from "../demo/story.ts";
import { exitCodeOf, listenForInterruption } from "../interruption.ts";
import { otherServerOption, tenantOption, toServers } from "../options.ts";
import { openStack } from "../stack/stack.ts";

interface DemoOptions {
  server?: string;
  tenant: string;
  pace: number;
}

const PACE_MS = 900;
/** A tree whose lines were broken could not be taken back. */
const COLUMNS_MIN = 80;

const HELP = `
Without --server it runs on a stack of its own, which is gone afterwards. Exit code 0 only when everything
went as told. It speaks for several agents, so a server that asks for keys is not the place for it.

Example:
  $ harmovela demo --server nats://127.0.0.1:4222
`;

export function demoCommand(): Command {
  return new Command("demo")
    .summary("watch a planner and its workers, a refused completion and a cascade")
    .description(
      "Watch a planner and its workers: a completion refused while a child runs, a cascade.",
    )
    .addOption(otherServerOption())
    .addOption(tenantOption())
    .option("--pace <ms>", "between two reports of a worker", parsePace, PACE_MS)
    .addHelpText("after", HELP)
    .action(runDemo);
}

async function runDemo({ server, tenant, pace }: DemoOptions): Promise<void> {
  const interruption = listenForInterruption();
  const stack = server === undefined ? await openStack() : undefined;
  const url = server ?? stack?.url ?? "";
  const board = new Board({
    write: (text) => process.stdout.write(text),
    isTerminal: process.stdout.isTTY === true && process.stdout.columns >= COLUMNS_MIN,
  });
  const stop = new AbortController();
  const give = (up: Promise<unknown>): void => {
    up.then(
      () => stop.abort(),
      (error: unknown) => stop.abort(error),
    );
  };
  give(interruption.requested);
  if (stack !== undefined) give(stack.failed);
  const started = performance.now();
  try {
    const { signal } = stop;
    await tellStory({ servers: toServers(url), tenant, paceMs: pace, board, signal });
    board.finish();
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    process.stdout.write(pc.green(`\nAll settled, as told, in ${seconds} s.\n`));
  } catch (error) {
    if (!interruption.isRequested) throw error;
    process.exitCode = exitCodeOf(await interruption.requested);
  } finally {
    await stack?.close();
    interruption.dispose();
  }
}

function parsePace(text: string): number {
  const ms = Number(text);
  if (!Number.isSafeInteger(ms) || ms < 1) throw new InvalidArgumentError("milliseconds, above 0");
  return ms;
}
