import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, parseMilliseconds, serverOption, tenantOption } from "../options.ts";
import { plainName } from "../terminal.ts";
import { verdictLine } from "../verdict-line.ts";

interface CancelOptions extends AgentCommandOptions {
  reason?: string;
  grace?: number;
  now: boolean;
  wait: boolean;
}

const HELP = `
Without --now whoever works below the task is asked to stop and forced after the grace. Entitled are the
task's owner, its submitter and the owners of its ancestors: name one with --as.

Example:
  $ harmovela cancel task_1 --as agent:planner --reason "not needed any more" --wait
`;

export function cancelCommand(): Command {
  return new Command("cancel")
    .summary("cancel a task and all below it")
    .description("Cancel a task and all below it, leaves first.")
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--reason <text>", "why, for those who are stopped")
    .option("--grace <ms>", "how long they may go on; default 5000", parseMilliseconds)
    .option("--now", "ask nobody, settle it at once", false)
    .option("--wait", "wait until the task has ended", false)
    .addHelpText("after", HELP)
    .action(runCancel);
}

async function runCancel(task: string, options: CancelOptions): Promise<void> {
  const { reason, grace, now, wait } = options;
  await withAgent(options, async (agent) => {
    const handle = agent.handle(task);
    const why = reason === undefined ? {} : { reason };
    const verdict = await handle.cancel(
      now
        ? { ...why, now: true }
        : { ...why, ...(grace === undefined ? {} : { grace_period_ms: grace }) },
    );
    process.stdout.write(`${verdictLine(verdict)}\n`);
    if (!wait) return;
    const { state, by } = await handle.settled();
    process.stdout.write(`${plainName(task)} ${state}, by ${plainName(by)}\n`);
  });
}
