/** The command line of `harmovela`. */
import { Command } from "commander";
import { conformanceCommand } from "./commands/conformance.ts";
import { stdioCommand } from "./commands/stdio.ts";
import { VERSION } from "./version.ts";

/** All commands. Usage errors end with exit code 2. */
export function createProgram(): Command {
  const program = new Command("harmovela")
    .description("Agents on NATS: a judged log of what they do, and the commands to run and watch it.")
    .version(VERSION)
    .showHelpAfterError("(add --help for usage)")
    .addHelpText("after", "\nStart here:\n  $ harmovela up        in one terminal\n  $ harmovela demo      in another\n");
  for (const command of [stdioCommand(), conformanceCommand()]) program.addCommand(command);
  return program;
}
