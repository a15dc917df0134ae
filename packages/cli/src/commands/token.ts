import { isInstant, parseInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { openTokenKeyFile, tokenKeyFileIn } from "@harmovela/host";
import { Command, Option } from "commander";
import { CommandFailure } from "../command-failure.ts";

const DEFAULT_STORE = ".harmovela";

/** Claims that are times: NumericDate on the wire, RFC 3339 for people. */
const TIMES: ReadonlySet<string> = new Set(["iat", "exp", "nbf"]);

const EXAMPLE = `
Example:
  $ harmovela token issue --store ./data --claims '{"iss":"agent:planner","sub":"agent:worker"}'
`;

const HELP = `
The token holds exactly these claims; what is left out stays out, and nothing is checked: it is for
tests and scripts. iat and exp are seconds since 1970, or RFC 3339 texts that become seconds. An
agent gets its token from a running stack, and only for a delegation of its own.

The key file is created when there is none; a stack on the same store uses the same keys.

${EXAMPLE}`;

export function tokenCommand(): Command {
  const issue = new Command("issue")
    .summary("sign claims with the key of a store, print the token")
    .description("Sign any claims with the key of a store, and print the handoff token.")
    .requiredOption("--claims <json>", "the claims, a JSON object")
    .addOption(
      new Option("--store <dir>", `store whose key signs (default: ${DEFAULT_STORE})`).conflicts(
        "key",
      ),
    )
    .option("--key <file>", "key set that signs, instead of a store's")
    .addHelpText("after", HELP)
    .action(async ({ claims, store = DEFAULT_STORE, key }: IssueOptions) => {
      const keys = await openTokenKeyFile(key ?? tokenKeyFileIn(store));
      process.stdout.write(`${await keys.sign(toClaims(claims))}\n`);
    });
  return new Command("token")
    .summary("make handoff tokens for tests")
    .description("Make handoff tokens for tests and scripts.")
    .addCommand(issue)
    .addHelpText("after", EXAMPLE);
}

interface IssueOptions {
  claims: string;
  store?: string;
  key?: string;
}

/** The claims as they are signed: times become numbers, everything else stays as it was given. */
export function toClaims(text: string): JsonObject {
  let claims: unknown;
  try {
    claims = JSON.parse(text);
  } catch {
    throw new CommandFailure("--claims is not JSON", 2);
  }
  if (claims === null || typeof claims !== "object" || Array.isArray(claims)) {
    throw new CommandFailure("--claims must be a JSON object", 2);
  }
  const entries = Object.entries(claims as JsonObject).map(([name, value]) =>
    TIMES.has(name) && isInstant(value) ? [name, parseInstant(value) / 1000] : [name, value],
  );
  return Object.fromEntries(entries) as JsonObject;
}
