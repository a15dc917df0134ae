/** The command line of `harmovela`. */
import { Command } from "commander";
import { agentCommand } from "./commands/agent.ts";
import { auditCommand } from "./commands/audit.ts";
import { beliefsCommand } from "./commands/beliefs.ts";
import { cancelCommand } from "./commands/cancel.ts";
import { checkCommand } from "./commands/check.ts";
import { checkpointsCommand } from "./commands/checkpoints.ts";
import { compensateCommand } from "./commands/compensate.ts";
import { conformanceCommand } from "./commands/conformance.ts";
import { demoCommand } from "./commands/demo.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { interruptCommand } from "./commands/interrupt.ts";
import { provenanceCommand } from "./commands/provenance.ts";
import { publishCommand } from "./commands/publish.ts";
import { resumeCommand } from "./commands/resume.ts";
import { serviceCommand } from "./commands/service.ts";
import { stdioCommand } from "./commands/stdio.ts";
import { tailCommand } from "./commands/tail.ts";
import { tokenCommand } from "./commands/token.ts";
import { treeCommand } from "./commands/tree.ts";
import { upCommand } from "./commands/up.ts";
import { whyCommand } from "./commands/why.ts";
import { VERSION } from "./version.ts";

const HELP = `
Start here:
  $ harmovela up        in one terminal
  $ harmovela demo      in another
`;

/** All commands. */
export function createProgram(): Command {
  const program = new Command("harmovela")
    .description("Agents on NATS: a judged log of what they do, and commands to run and watch it.")
    .version(VERSION)
    .addHelpText("after", HELP);
  for (const command of [
    upCommand(),
    demoCommand(),
    tailCommand(),
    treeCommand(),
    whyCommand(),
    beliefsCommand(),
    provenanceCommand(),
    publishCommand(),
    cancelCommand(),
    interruptCommand(),
    resumeCommand(),
    checkpointsCommand(),
    compensateCommand(),
    checkCommand(),
    doctorCommand(),
    auditCommand(),
    stdioCommand(),
    tokenCommand(),
    conformanceCommand(),
    agentCommand(),
    serviceCommand(),
  ]) {
    program.addCommand(command);
  }
  for (const command of allOf(program)) command.showHelpAfterError("(--help shows how it is used)");
  return program;
}

/** A command and all below it: what one is told its subcommands do not take over. */
export function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap((below) => allOf(below as Command))];
}
