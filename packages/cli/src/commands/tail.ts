import type { ConnectionChange } from "@harmovela/bus";
import type { Agent, Gap } from "@harmovela/client";
import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { eventLine } from "../event-line.ts";
import { listenForInterruption } from "../interruption.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { createLineWriter } from "../stdio/line-writer.ts";
import { plainJson } from "../terminal.ts";

interface TailOptions extends AgentCommandOptions {
  type: string[];
  source: string[];
  target: string[];
  task: string[];
  fromStart: boolean;
  json: boolean;
}

const HELP = `
Type patterns: * is one segment, a trailing .* one or more. What comes from agents is shown escaped.
With a key the services are asked for what is logged: for each type the service that judges it must run.

Example:
  $ harmovela tail --type 'task.*' --task task_1 --from-start
`;

export function tailCommand(): Command {
  return new Command("tail")
    .summary("follow what is logged, until Ctrl-C")
    .description("Follow what is logged, one line for each event, until Ctrl-C.")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--type <pattern>", "only these types (repeatable)", collect, [])
    .option("--source <agent>", "only from this agent (repeatable)", collect, [])
    .option("--target <agent>", "only for this agent (repeatable)", collect, [])
    .option("--task <id>", "only about this task (repeatable)", collect, [])
    .option("--from-start", "begin with the oldest entry there is", false)
    .option("--streams", "with an operator's key: read streams, and ask no service", false)
    .option("--json", "one JSON envelope for each line", false)
    .addHelpText("after", HELP)
    .action(runTail);
}

async function runTail(options: TailOptions): Promise<void> {
  const interruption = listenForInterruption();
  try {
    await withAgent({ ...options, onChange: teller() }, async (agent) => {
      interruption.requested.then(
        () => agent.close(),
        () => {
          // Never rejects.
        },
      );
      await follow(agent, options);
    });
  } finally {
    interruption.dispose();
  }
}

async function follow(agent: Agent, options: TailOptions): Promise<void> {
  const { type: types, source, target, task, fromStart, json } = options;
  await using observation = agent.subscribe({
    types,
    source,
    target,
    task_id: task,
    from: fromStart ? "start" : "now",
    onGap: reportGap,
  });
  const out = createLineWriter(process.stdout, () => {
    if (out.isBroken) void observation.close();
  });
  for await (const { envelope, cursor } of observation) {
    const line = json ? plainJson(JSON.stringify(envelope)) : eventLine(envelope, cursor);
    out.write(Buffer.from(line));
    if (!out.hasRoom) await out.flush();
  }
}

/** Whoever looks at a line that does not come is told why. */
function teller(): (change: ConnectionChange) => void {
  let isLost = false;
  return (change) => {
    if (change === "disconnected") {
      isLost = true;
      process.stderr.write(
        "harmovela: the connection was lost; it goes on when the server is back\n",
      );
    } else if (change === "connected" && isLost) {
      isLost = false;
      process.stderr.write("harmovela: connected again\n");
    }
  };
}

function reportGap(gap: Gap): void {
  process.stderr.write(`harmovela: entries are not kept any more: ${JSON.stringify(gap)}\n`);
}

function collect(value: string, values: string[]): string[] {
  return [...values, value];
}
