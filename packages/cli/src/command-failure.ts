/** What a command says when it cannot do what it was asked: one line on stderr. */
import { RejectedError } from "@harmovela/client";
import { HarmovelaError } from "@harmovela/failure";
import { plainText } from "./terminal.ts";

/** Something that the user can put right; its message is the whole line. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  /** Of the process. */
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

const HINTS: Readonly<Record<string, string>> = {
  unauthorized:
    "HARMOVELA_KEY names the file of a key, whose tenant and agent --tenant and --as name",
  connection_error: "is a server running? `harmovela up` starts one",
  no_service: "is a stack running there? `harmovela up` starts one",
};

/** One line about any error, safe to print. */
export function describeFailure(error: unknown): string {
  if (error instanceof HarmovelaError) {
    // What a service refuses is no question of how this command connects.
    const hint = error instanceof RejectedError ? undefined : HINTS[error.code];
    // The failure record says in machine words what the line says.
    const { failure: _failure, ...facts } = error.details ?? {};
    const details = Object.keys(facts).length === 0 ? "" : ` ${JSON.stringify(facts)}`;
    const line = `${error.code}: ${error.message}${details}`;
    return plainText(hint === undefined || line.includes("--server") ? line : `${line} (${hint})`);
  }
  return plainText(error instanceof Error ? error.message : String(error));
}
