import { Command, InvalidArgumentError } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainName } from "../terminal.ts";

interface CompensateOptions extends AgentCommandOptions {
  reason: string;
  description: string;
  target?: string;
  deadline?: Date;
  id?: string;
  wait: boolean;
}

const HELP = `
Makes a task of its own that undoes what the other one did, once for each reason. The original has ended or
is stopped by an interruption.

Example:
  $ harmovela compensate task_1 --as agent:planner --reason "trip cancelled" \\
      --description "cancel the hotel" --target agent:hotels --wait
`;

export function compensateCommand(): Command {
  return new Command("compensate")
    .summary("ask for what a task has done to be undone")
    .description("Ask for what a task has done to be undone, by a task of its own.")
    .argument("<task>", "id of the task that is to be undone")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .requiredOption("--reason <text>", "why")
    .requiredOption("--description <text>", "what is to be done")
    .option("--target <agent>", "who is to do it")
    .option("--deadline <time>", "RFC 3339; later it times out", parseTime)
    .option("--id <task>", "id of the new task; default a fresh one")
    .option("--wait", "wait until it has ended", false)
    .addHelpText("after", HELP)
    .action(runCompensate);
}

async function runCompensate(task: string, options: CompensateOptions): Promise<void> {
  const { reason, description, target, deadline, id, wait } = options;
  await withAgent(options, async (agent) => {
    const undoing = await agent.compensate(task, {
      reason,
      description,
      ...(target === undefined ? {} : { target }),
      ...(deadline === undefined ? {} : { deadline }),
      ...(id === undefined ? {} : { taskId: id }),
    });
    process.stdout.write(`${plainName(undoing.id)} undoes ${plainName(task)}\n`);
    if (!wait) return;
    const { state, by } = await undoing.settled();
    process.stdout.write(`${plainName(undoing.id)} ${state}, by ${plainName(by)}\n`);
  });
}

function parseTime(text: string): Date {
  const time = new Date(text);
  if (!/^\d{4}-\d{2}-\d{2}T/.test(text) || Number.isNaN(time.getTime()))
    throw new InvalidArgumentError("a time as in 2030-01-31T12:00:00Z");
  return time;
}
