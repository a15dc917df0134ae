import { writeFileSync } from "node:fs";
import type { JsonObject } from "@harmovela/failure";
import { Command, InvalidArgumentError } from "commander";
import { type AgentCommandOptions, withAgent } from "../agent.ts";
import { agentOption, serverOption, tenantOption } from "../options.ts";
import { provJson } from "../prov-json.ts";
import { graphIn, provenanceLines } from "../provenance-lines.ts";
import { plainJson } from "../terminal.ts";

interface ProvenanceOptions extends AgentCommandOptions {
  depth: number;
  json: boolean;
  provJson?: string;
}

const DEPTH = 8;
const DEPTH_MAX = 64;
/** Events that one answer holds. */
const LIMIT = 1000;

const HELP = `
Each line: an event, what its evidence is worth, who sent it, and what is to be said of it. Below it is what it
follows from, and who vouches for it.

Example:
  $ harmovela provenance evt_1 --prov-json lineage.json
`;

export function provenanceCommand(): Command {
  return new Command("provenance")
    .summary("show what an event follows from and who vouches for it")
    .description("Show the lineage of an event over all logs, as the service knows it now.")
    .argument("<event>", "id of the event")
    .addOption(serverOption())
    .addOption(tenantOption())
    .addOption(agentOption())
    .option("--depth <number>", "go so many steps back at most", parseDepth, DEPTH)
    .option("--json", "print the answer as JSON", false)
    .option("--prov-json <file>", "write it as W3C PROV-JSON too")
    .addHelpText("after", HELP)
    .action(runProvenance);
}

async function runProvenance(event: string, options: ProvenanceOptions): Promise<void> {
  const { depth, json, provJson: file } = options;
  const params: JsonObject = { event_id: event, depth, limit: LIMIT };
  const reading = await withAgent(options, (agent) => agent.read("provenance", "graph", params));
  const graph = graphIn(reading.result as JsonObject);
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(provJson(graph), null, 2)}\n`);
  const text = json ? plainJson(JSON.stringify(reading)) : provenanceLines(graph).join("\n");
  process.stdout.write(`${text}\n`);
}

function parseDepth(text: string): number {
  const depth = Number(text);
  if (!Number.isSafeInteger(depth) || depth < 1 || depth > DEPTH_MAX) {
    throw new InvalidArgumentError(`a number from 1 to ${DEPTH_MAX}`);
  }
  return depth;
}
