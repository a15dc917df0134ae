/** How the commands prove themselves: `HARMOVELA_KEY` names a file with an NKey seed or NATS credentials. */
import { authFromFile, type BusAuth } from "@harmovela/bus";

/** Part of the options of a connection; empty when nothing is to be proved. */
export function ownKey(): { auth?: BusAuth } {
  const { HARMOVELA_KEY: path = "" } = process.env;
  return path === "" ? {} : { auth: authFromFile(path) };
}
