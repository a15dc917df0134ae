import type { JsonObject } from "@harmovela/failure";
import { Command } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainJson } from "../terminal.ts";
import { type TreeNode, treeLines } from "../tree-lines.ts";

interface TreeOptions extends AgentCommandOptions {
  json: boolean;
}

const HELP = `
Example:
  $ harmovela tree task_1
`;

export function treeCommand(): Command {
  return new Command("tree")
    .summary("show a task and what is below it")
    .description("Show a task and what is below it, as the service knows it now.")
    .argument("<task>", "id of the task")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--json", "print the answer as JSON", false)
    .addHelpText("after", HELP)
    .action(runTree);
}

async function runTree(task: string, options: TreeOptions): Promise<void> {
  const reading = await withAgent(options, (agent) => agent.tree(task));
  if (options.json) {
    process.stdout.write(`${plainJson(JSON.stringify(reading))}\n`);
    return;
  }
  const { nodes, truncated, truncatedMore } = reading.result as JsonObject;
  const lines = treeLines((nodes as JsonObject[]).map(toNode));
  if (truncated !== 0) {
    lines.push(`… and ${truncatedMore === true ? "at least " : ""}${truncated} more`);
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

function toNode(view: JsonObject): TreeNode {
  const text = (value: unknown): string | undefined =>
    typeof value === "string" ? value : undefined;
  return {
    id: String(view.task_id),
    parent: text(view.parent_task_id),
    state: String(view.state),
    who: text(view.owner) ?? text(view.target),
    note: text(view.reason) ?? "",
  };
}
