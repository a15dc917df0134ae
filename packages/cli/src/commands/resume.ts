import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { verdictLine } from "../verdict-line.ts";

interface ResumeOptions extends AgentCommandOptions {
  checkpoint?: string;
  tree: boolean;
}

const HELP = `
A process of the task's owner that has room takes it up. A checkpoint that is not there ends the task with
checkpoint_missing: harmovela checkpoints lists those that are.

Example:
  $ harmovela resume task_1 --as agent:planner
`;

export function resumeCommand(): Command {
  return new Command("resume")
    .summary("let a stopped task go on")
    .description("Let a stopped task go on from a checkpoint, by default from the one saved last.")
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--checkpoint <id>", "go on from this one")
    .option("--tree", "also what was stopped with it, parents first", false)
    .addHelpText("after", HELP)
    .action(runResume);
}

async function runResume(task: string, options: ResumeOptions): Promise<void> {
  const { checkpoint, tree } = options;
  const verdict = await withAgent(options, (agent) =>
    agent.interruptions.resume(task, checkpoint, tree ? { scope: "tree" } : {}),
  );
  process.stdout.write(`${verdictLine(verdict)}\n`);
}
