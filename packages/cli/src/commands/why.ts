import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainText } from "../terminal.ts";

const HELP = `
Example:
  $ harmovela why task_1
  task_1 (started, owner agent:planner) waits for 1 live child: …
`;

export function whyCommand(): Command {
  return new Command("why")
    .summary("say in one sentence what a task waits for")
    .description("Say in one sentence what a task waits for, or how it ended.")
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .addHelpText("after", HELP)
    .action(async (task: string, options: AgentCommandOptions) => {
      const { result } = await withAgent(options, (agent) => agent.why(task));
      process.stdout.write(`${plainText(String(result))}\n`);
    });
}
