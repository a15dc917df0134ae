import { isId } from "@harmovela/envelope";
import { Command, Option } from "commander";
import { CommandFailure } from "../command-failure.ts";
import { enrol, strike } from "../identity/enrol.ts";
import { type Identity, labelOf, rightsProblem } from "../identity/identity.ts";
import { readIdentities } from "../identity/identity-file.ts";
import { configOption, tenantOption } from "../options.ts";
import { plainJson, plainText } from "../terminal.ts";

const EXAMPLE = `
Example:
  $ harmovela agent add agent:worker --tenant acme
  $ harmovela agent add agent:clerk --tenant acme --role publisher \\
      --scope write:tasks --scope read:tasks --scope 'subscribe:task.*'
`;

const HELP = `
The key goes into <tenant>.<name>.nk beside the configuration file, readable by its owner alone; give
it to the agent and to nobody else. The server includes the file, and reads it again when told so:
nats-server --signal reload; harmovela up --secure does so by itself. docs/operating.md says how a client in any language uses it.

Scopes: read:<domain>, write:<domain>, subscribe:<pattern of types>; a domain is tasks, beliefs,
interruptions, provenance or *. read:<agent> and write:<agent> confine it to these. Roles: viewer,
publisher, operator, tenant-admin, cross-tenant-operator. Services read both from <config>.grants.json
(HARMOVELA_GRANTS), which is kept in step.
${EXAMPLE}`;

const NEW_TENANT =
  "the first of this tenant: a running server needs two reloads, one after the other, which `harmovela up --secure` does by itself (docs/operating.md)\n";
const KIND_WIDTH = "observer".length;

interface AgentOptions {
  tenant: string;
  config: string;
}

interface AddOptions extends AgentOptions {
  observer: boolean;
  role: string[];
  scope: string[];
}

export function agentCommand(): Command {
  const add = new Command("add")
    .summary("make a key for an agent")
    .description("Make a key for an agent, and let it connect under its own name.")
    .argument("<name>", "the source of its envelopes, as in agent:worker")
    .addOption(tenantOption())
    .addOption(configOption())
    .addOption(new Option("--observer", "it only watches and asks").default(false))
    .addOption(repeatable("--role <role>", "what it may ask for across its own work (repeatable)"))
    .addOption(repeatable("--scope <scope>", "only this; none: all of its tenant (repeatable)"))
    .addHelpText("after", HELP)
    .action((name: string, { tenant, config, observer, role, scope }: AddOptions) => {
      assertAgent(name, tenant);
      const rights = rightsOf(role, scope);
      const kind = observer ? "observer" : "agent";
      const isNew = !readIdentities(config).some((one) => "tenant" in one && one.tenant === tenant);
      const identity = { kind, tenant, name, ...rights } as const;
      const files = enrol(config, [{ identity, file: [tenant, name] }]);
      if (isNew) process.stderr.write(NEW_TENANT);
      process.stdout.write(files.map((file) => `${plainText(file)}\n`).join(""));
    });
  const remove = new Command("remove")
    .summary("take the right to connect away")
    .description(
      "Take from an agent the right to connect; its key is worth nothing from the next reload on.",
    )
    .argument("<name>", "as it was added")
    .addOption(tenantOption())
    .addOption(configOption())
    .action((name: string, { tenant, config }: AgentOptions) => {
      strike(
        config,
        `${name} of ${tenant}`,
        (known) => "tenant" in known && known.tenant === tenant && known.name === name,
      );
    });
  const list = new Command("list")
    .summary("say who may connect")
    .description("Say who may connect, services included, with the public half of each key.")
    .addOption(configOption())
    .option("--json", "one JSON object for each line", false)
    .action(({ config, json }: Pick<AgentOptions, "config"> & { json: boolean }) => {
      const known = readIdentities(config);
      if (known.length === 0) process.stderr.write(`nobody: ${plainText(config)} names no one\n`);
      const lines = known.map((one) => (json ? plainJson(JSON.stringify(one)) : lineOf(one)));
      process.stdout.write(lines.map((line) => `${line}\n`).join(""));
    });
  return new Command("agent")
    .summary("say which agents may connect")
    .description("Give keys to agents, and say which may connect.")
    .addCommand(add)
    .addCommand(list)
    .addCommand(remove)
    .addHelpText("after", EXAMPLE);
}

function repeatable(flags: string, text: string): Option {
  return new Option(flags, text)
    .default([])
    .argParser((value: string, values: string[]) => [...values, value]);
}

/** What it is to have; what was not named is left out. */
function rightsOf(roles: string[], scopes: string[]): { roles?: string[]; scopes?: string[] } {
  const problem = rightsProblem({ roles, scopes });
  if (problem !== undefined) throw new CommandFailure(problem, 2);
  return {
    ...(roles.length === 0 ? {} : { roles }),
    ...(scopes.length === 0 ? {} : { scopes }),
  };
}

function lineOf(identity: Identity): string {
  const rights = "tenant" in identity ? describeRights(identity) : "";
  return plainText(
    `${identity.kind.padEnd(KIND_WIDTH)} ${labelOf(identity)} ${identity.key}${rights}`,
  );
}

function describeRights({
  roles = [],
  scopes = [],
}: {
  roles?: string[];
  scopes?: string[];
}): string {
  const words = [...roles.map((role) => `role:${role}`), ...scopes];
  return words.length === 0 ? "" : ` ${words.join(" ")}`;
}

/** Services believe who is called `service:…` more than agents. */
function assertAgent(name: string, tenant: string): void {
  if (!isId(name) || !isId(tenant)) {
    throw new CommandFailure("a name has 1 to 128 bytes and no control characters", 2);
  }
  if (name.startsWith("service:")) {
    throw new CommandFailure("that is the name of a service: `harmovela service add`", 2);
  }
}
