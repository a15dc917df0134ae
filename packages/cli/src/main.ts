import { CommanderError } from "commander";
import { CommandFailure, describeFailure } from "./command-failure.ts";
import { allOf, createProgram } from "./program.ts";

const USAGE_ERROR = 2;

// Whoever reads the output may stop at any time; that is no error, whatever was being written.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const program = createProgram();
for (const command of allOf(program)) command.exitOverride();
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong; help and version are no errors.
    process.exitCode = error.exitCode === 0 ? 0 : USAGE_ERROR;
  } else {
    process.stderr.write(`harmovela: ${describeFailure(error)}\n`);
    process.exitCode = error instanceof CommandFailure ? error.exitCode : 1;
  }
}
