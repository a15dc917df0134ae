import { Argument, Command } from "commander";
import { enrol, strike } from "../identity/enrol.ts";
import { candidatesOf, ENROLLABLE, OPERATOR } from "../identity/own-services.ts";
import { configOption } from "../options.ts";
import { plainText } from "../terminal.ts";

const EXAMPLE = `
Example:
  $ harmovela service add tasks
`;

const HELP = `
A service gets two keys, one for each of its connections: HARMOVELA_CREDS_WRITER and
HARMOVELA_CREDS_ANSWERER name their files. An operator gets one, and may do everything: check, doctor,
and what reads logs need it (HARMOVELA_KEY).
${EXAMPLE}`;

export function serviceCommand(): Command {
  const which = () =>
    new Argument("<domain>", "what it judges; or an operator").choices(ENROLLABLE);
  const add = new Command("add")
    .summary("make the keys of a service")
    .description("Make the keys of a service or of an operator, and let it connect.")
    .addArgument(which())
    .addOption(configOption())
    .addHelpText("after", HELP)
    .action((domain: string, { config }: { config: string }) => {
      const files = enrol(config, candidatesOf(domain));
      process.stdout.write(files.map((file) => `${plainText(file)}\n`).join(""));
    });
  const remove = new Command("remove")
    .summary("take the right to connect away")
    .description("Take from a service or an operator the right to connect.")
    .addArgument(which())
    .addOption(configOption())
    .action((domain: string, { config }: { config: string }) => {
      strike(config, domain, (known) =>
        known.kind === "service"
          ? known.domain === domain
          : known.kind === OPERATOR && domain === OPERATOR,
      );
    });
  return new Command("service")
    .summary("say which services may connect")
    .description("Give keys to services and operators, and say which may connect.")
    .addCommand(add)
    .addCommand(remove)
    .addHelpText("after", EXAMPLE);
}
