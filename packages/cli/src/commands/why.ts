import { type Agent, type Reading, RejectedError } from "@harmovela/client";
import type { JsonObject } from "@harmovela/failure";
import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainText } from "../terminal.ts";

interface WhyOptions extends AgentCommandOptions {
  source?: string;
}

/** What stands before the key of a belief, or the event that says it. */
const BELIEF = "belief:";

const HELP = `
Example:
  $ harmovela why task_1
  task_1 (started, owner agent:planner) waits for 1 live child: …
  $ harmovela why belief:memory:deadline
  memory:deadline, as agent:planner said (evt_1) at …, is stale since …
`;

export function whyCommand(): Command {
  return new Command("why")
    .summary("say in one sentence what a task waits for, or how a belief stands")
    .description(
      "Say in one sentence what a task waits for, or how it ended; of belief:<key>, whether it may be acted on.",
    )
    .argument("<what>", "id of the task, or belief:<key or event>")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--source <agent>", "of a belief: what this agent claims, and not the newest claim")
    .addHelpText("after", HELP)
    .action(async (what: string, options: WhyOptions) => {
      const { result } = await withAgent(options, (agent) =>
        what.startsWith(BELIEF) ? whyBelief(agent, what, options) : agent.why(what),
      );
      process.stdout.write(`${plainText(String(result))}\n`);
    });
}

/** The key behind the word; else an event; else, of what goes by its event alone, the whole. */
async function whyBelief(agent: Agent, what: string, { source }: WhyOptions): Promise<Reading> {
  const name = what.slice(BELIEF.length);
  const of: JsonObject = source === undefined ? {} : { source };
  const names: JsonObject[] = [{ key: name, ...of }, { event_id: name }];
  for (const params of names) {
    try {
      return await agent.read("beliefs", "why", params);
    } catch (error) {
      if (!(error instanceof RejectedError) || error.code !== "invalid_query") throw error;
    }
  }
  return agent.read("beliefs", "why", { key: what, ...of });
}
