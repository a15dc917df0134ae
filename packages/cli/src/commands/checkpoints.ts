import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { checkpointLine } from "../checkpoint-line.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainJson } from "../terminal.ts";

interface CheckpointsOptions extends AgentCommandOptions {
  json: boolean;
}

const HELP = `
Each line: the checkpoint, when it was made, its size, where it is. Oldest first.

Example:
  $ harmovela checkpoints task_1
`;

export function checkpointsCommand(): Command {
  return new Command("checkpoints")
    .summary("list what was saved of a task")
    .description("List the checkpoints from which a task can go on.")
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--json", "one JSON object for each line", false)
    .addHelpText("after", HELP)
    .action(runCheckpoints);
}

async function runCheckpoints(task: string, options: CheckpointsOptions): Promise<void> {
  const checkpoints = await withAgent(options, (agent) => agent.interruptions.checkpoints(task));
  for (const checkpoint of checkpoints) {
    const line = options.json ? plainJson(JSON.stringify(checkpoint)) : checkpointLine(checkpoint);
    process.stdout.write(`${line}\n`);
  }
}
