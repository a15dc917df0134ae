import { isId } from "@harmovela/envelope";
import { Command, Option } from "commander";
import { CommandFailure } from "../command-failure.ts";
import { enrol, strike } from "../identity/enrol.ts";
import { labelOf } from "../identity/identity.ts";
import { readIdentities } from "../identity/identity-file.ts";
import { configOption, tenantOption } from "../options.ts";
import { plainText } from "../terminal.ts";

const EXAMPLE = `
Example:
  $ harmovela agent add agent:worker --tenant acme
`;

const HELP = `
The key goes into <tenant>.<name>.nk beside the configuration file, readable by its owner alone; give
it to the agent and to nobody else. The server includes the file, and reads it again when told so:
nats-server --signal reload. docs/operating.md says how a client in any language uses it.
${EXAMPLE}`;

const NEW_TENANT =
  "the first of this tenant: a running server needs two reloads, one after the other (docs/operating.md)\n";
const KIND_WIDTH = "observer".length;

interface AgentOptions {
  tenant: string;
  config: string;
}

export function agentCommand(): Command {
  const add = new Command("add")
    .summary("make a key for an agent")
    .description("Make a key for an agent, and let it connect under its own name.")
    .argument("<name>", "the source of its envelopes, as in agent:worker")
    .addOption(tenantOption())
    .addOption(configOption())
    .addOption(new Option("--observer", "it only watches and asks").default(false))
    .addHelpText("after", HELP)
    .action((name: string, { tenant, config, observer }: AgentOptions & { observer: boolean }) => {
      assertAgent(name, tenant);
      const kind = observer ? "observer" : "agent";
      const isNew = !readIdentities(config).some((one) => "tenant" in one && one.tenant === tenant);
      const files = enrol(config, [{ identity: { kind, tenant, name }, file: [tenant, name] }]);
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
    .action(({ config }: Pick<AgentOptions, "config">) => {
      for (const identity of readIdentities(config)) {
        const line = `${identity.kind.padEnd(KIND_WIDTH)} ${labelOf(identity)} ${identity.key}`;
        process.stdout.write(`${plainText(line)}\n`);
      }
    });
  return new Command("agent")
    .summary("say which agents may connect")
    .description("Give keys to agents, and say which may connect.")
    .addCommand(add)
    .addCommand(list)
    .addCommand(remove)
    .addHelpText("after", EXAMPLE);
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
