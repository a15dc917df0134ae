import type { Agent } from "@harmovela/client";
import type { JsonObject } from "@harmovela/failure";
import { Command, InvalidArgumentError, Option } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { beliefLine } from "../belief-lines.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { plainJson } from "../terminal.ts";

interface BeliefsOptions extends AgentCommandOptions {
  state: string;
  limit: number;
  json: boolean;
}

/** Claims shown unless told. */
const LIMIT = 100;
/** Claims asked for at once. */
const PAGE = 100;

const HELP = `
Each line: what it is a claim on, its value, who says so, how it stands, and what speaks against it.

Example:
  $ harmovela beliefs memory: --state contradicted
`;

export function beliefsCommand(): Command {
  return new Command("beliefs")
    .summary("list what agents hold true, and what speaks against it")
    .description("List the claims of a tenant: on all keys, or on those that begin with a text.")
    .argument("[prefix]", "only keys that begin with this, as in memory:", "")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .addOption(
      new Option("--state <state>", "only claims that are in this state")
        .choices(["all", "stale", "contradicted", "unknown"])
        .default("all"),
    )
    .option("--limit <number>", "show so many at most", parseLimit, LIMIT)
    .option("--json", "one JSON claim for each line", false)
    .addHelpText("after", HELP)
    .action(runBeliefs);
}

async function runBeliefs(prefix: string, options: BeliefsOptions): Promise<void> {
  const { claims, isCut } = await withAgent(options, (agent) => listed(agent, prefix, options));
  for (const claim of claims) {
    const line = options.json ? plainJson(JSON.stringify(claim)) : beliefLine(claim);
    process.stdout.write(`${line}\n`);
  }
  if (isCut) process.stderr.write(`harmovela: there are more; --limit shows them\n`);
}

/** Page by page; whether there are more. */
async function listed(
  agent: Agent,
  prefix: string,
  { state, limit }: BeliefsOptions,
): Promise<{ claims: JsonObject[]; isCut: boolean }> {
  const claims: JsonObject[] = [];
  let after: string | undefined;
  do {
    const params: JsonObject = { state, limit: Math.min(PAGE, limit) };
    if (prefix !== "") params.prefix = prefix;
    if (after !== undefined) params.after = after;
    const { result } = await agent.read("beliefs", "list", params);
    const page = result as { claims: JsonObject[]; next?: string };
    claims.push(...page.claims);
    after = page.next;
  } while (after !== undefined && claims.length < limit);
  return {
    claims: claims.slice(0, limit),
    isCut: after !== undefined || claims.length > limit,
  };
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new InvalidArgumentError("a number from 1 on");
  return limit;
}
