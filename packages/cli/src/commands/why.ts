import { type Agent, type Reading, RejectedError } from "@harmovela/client";
import { type JsonObject, toHarmovelaError } from "@harmovela/failure";
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
      const sentences = await withAgent(options, async (agent) =>
        what.startsWith(BELIEF)
          ? [String((await whyBelief(agent, what, options)).result)]
          : await whyTask(agent, what),
      );
      for (const sentence of sentences) process.stdout.write(`${plainText(sentence)}\n`);
    });
}

/** What the coordinator says, then what the interruption manager has to add. */
async function whyTask(agent: Agent, taskId: string): Promise<string[]> {
  const { result } = await agent.why(taskId);
  return [String(result), ...(await interruptionsOf(agent, taskId))];
}

async function interruptionsOf(agent: Agent, taskId: string): Promise<string[]> {
  try {
    const { result } = await agent.read("interruptions", "why", { task_id: taskId });
    return Array.isArray(result) ? result.map(String) : [];
  } catch (error) {
    // It is not running, which doctor tells; the first sentence holds all the same.
    if (toHarmovelaError(error).category === "dependency") return [];
    throw error;
  }
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
