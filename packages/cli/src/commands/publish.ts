import type { Draft } from "@harmovela/client";
import type { JsonObject } from "@harmovela/failure";
import { Command, InvalidArgumentError } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainJson } from "../terminal.ts";
import { verdictLine } from "../verdict-line.ts";

interface PublishOptions extends AgentCommandOptions {
  payload: JsonObject;
  envelope: JsonObject;
  target?: string;
  task?: string;
  parent?: string;
  validate: boolean;
  json: boolean;
}

const HELP = `
Id, source and time are filled in. Exit code 1 when it is refused.

Example:
  $ harmovela publish task.submitted --task task_1 --target agent:worker --payload '{"description":"index the docs"}'
`;

export function publishCommand(): Command {
  return new Command("publish")
    .summary("publish one event and print the verdict")
    .description("Publish one event as an agent and print the verdict.")
    .argument("<type>", "event type, as in task.submitted")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--payload <json>", "payload, a JSON object", parseObject, {})
    .option("--target <agent>", "who it is for")
    .option("--task <id>", "task_id")
    .option("--parent <id>", "parent_task_id")
    .option("--envelope <json>", "further envelope fields, a JSON object", parseObject, {})
    .option("--no-validate", "send it although it can never be accepted")
    .option("--json", "print the verdict as JSON", false)
    .addHelpText("after", HELP)
    .action(runPublish);
}

async function runPublish(type: string, options: PublishOptions): Promise<void> {
  const { payload, envelope, target, task, parent, validate, json } = options;
  const draft: Draft = {
    ...envelope,
    type,
    ...(target === undefined ? {} : { target }),
    ...(task === undefined ? {} : { task_id: task }),
    ...(parent === undefined ? {} : { parent_task_id: parent }),
    payload,
  };
  const verdict = await withAgent(options, (agent) => agent.publish(draft, { validate }));
  process.stdout.write(`${json ? plainJson(JSON.stringify(verdict)) : verdictLine(verdict)}\n`);
}

function parseObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError("not a JSON object");
  }
  return value as JsonObject;
}
