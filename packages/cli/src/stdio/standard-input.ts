/**
 * The standard input of `stdio`. The program's start file loads this module before everything else, so
 * that pauses of the writer are noticed while the rest is still being loaded.
 */
import { PacedInput } from "./paced-input.ts";

const early = process.argv[2] === "stdio" ? new PacedInput(process.stdin) : undefined;

/** Listened to since this module was loaded, where the command line says so, else from now on. */
export function openStandardInput(): PacedInput {
  return early ?? new PacedInput(process.stdin);
}
