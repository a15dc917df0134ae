import type { InterruptionPolicy } from "@harmovela/client";
import { Command, Option } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, parseMilliseconds, serverOption, tenantOption } from "../options.ts";
import { plainName } from "../terminal.ts";
import { verdictLine } from "../verdict-line.ts";

interface InterruptOptions extends AgentCommandOptions {
  policy: InterruptionPolicy;
  grace?: number;
  reason?: string;
  tree: boolean;
  wait: boolean;
}

const HELP = `
The task stops and can go on later: harmovela resume. Entitled are its owner, its submitter, who delegated
it, the owners of its ancestors, and the runtime: name one with --as. What is not saved within the grace is
stopped by force.

Example:
  $ harmovela interrupt task_1 --as agent:planner --reason "making room" --wait
`;

export function interruptCommand(): Command {
  return new Command("interrupt")
    .summary("stop a task so that it can go on later")
    .description(
      "Ask for a task to be stopped so that it can go on later, in any process of its owner.",
    )
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .addOption(
      new Option(
        "--policy <policy>",
        "save at once, finish the unit under way first, or stop by force",
      )
        .choices(["save_and_stop", "drain_then_stop", "force_stop"])
        .default("save_and_stop"),
    )
    .option("--grace <ms>", "time to save; default 5000, drain_then_stop 60000", parseMilliseconds)
    .option("--reason <text>", "why, for whoever is stopped")
    .option("--tree", "all below it too, leaves first", false)
    .option("--wait", "wait until it is saved", false)
    .addHelpText("after", HELP)
    .action(runInterrupt);
}

async function runInterrupt(task: string, options: InterruptOptions): Promise<void> {
  const { policy, grace, reason, tree, wait } = options;
  await withAgent(options, async (agent) => {
    const interruption = await agent.interruptions.request(task, {
      policy,
      ...(grace === undefined ? {} : { graceMs: grace }),
      ...(reason === undefined ? {} : { reason }),
      ...(tree ? { scope: "tree" } : {}),
    });
    if (interruption.verdict) process.stdout.write(`${verdictLine(interruption.verdict)}\n`);
    if (!wait) return;
    const { checkpointId, by } = await interruption.saved;
    const line = `${plainName(task)} saved as ${plainName(checkpointId)}, by ${plainName(by)}`;
    process.stdout.write(`${line}\n`);
  });
}
