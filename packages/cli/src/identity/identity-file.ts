/**
 * The file that a nats-server includes: everybody who may connect. What is kept stands in comments, from
 * which the rest is written anew each time, so that no change by hand to a list of permissions lasts.
 */
import { closeSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { CommandFailure } from "../command-failure.ts";
import { grantsFileOf, writeGrants } from "./grants-file.ts";
import { asIdentity, type Identity } from "./identity.ts";
import { accountsOf } from "./server-accounts.ts";

const MARK = "#: ";
const HEAD = `# Written by harmovela; what is changed by hand is lost. Include it in the server's configuration.
# The lines that begin with "${MARK.trim()}" say who may connect, and the rest follows from them.
`;

/** Everybody who may connect; nobody when there is no such file. Throws a CommandFailure naming the line. */
export function readIdentities(path: string): Identity[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new CommandFailure(`${path} cannot be read: ${(error as Error).message}`);
  }
  if (!text.startsWith(HEAD)) throw new CommandFailure(`${path} was not written by this command`);
  return text.split("\n").flatMap((line, at) => {
    if (!line.startsWith(MARK)) return [];
    const identity = parsed(line.slice(MARK.length));
    if (identity === undefined) throw new CommandFailure(`${path}:${at + 1}: nobody that is known`);
    return [identity];
  });
}

/**
 * Changes who may connect, and what services grant them. One command at a time; each file is whole at every
 * moment, and as it was when `change` throws. Grants come first: between the two, somebody new has no key
 * yet, and somebody who goes may do nothing any more.
 */
export function changeIdentities(path: string, change: (known: Identity[]) => Identity[]): void {
  const aside = `${path}.new`;
  const file = openAside(aside);
  try {
    try {
      const identities = change(readIdentities(path));
      writeSync(file, textOf(identities));
      writeGrants(grantsFileOf(path), identities);
    } finally {
      closeSync(file);
    }
    renameSync(aside, path);
  } catch (error) {
    unlinkSync(aside);
    throw error;
  }
}

function openAside(aside: string): number {
  try {
    return openSync(aside, "wx", 0o644);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "EEXIST" ? "another command is at work; remove the file when none is" : message;
    throw new CommandFailure(`${aside}: ${why}`);
  }
}

function textOf(identities: readonly Identity[]): string {
  const kept = identities.map((identity) => `${MARK}${JSON.stringify(identity)}\n`).join("");
  return `${HEAD}${kept}accounts: ${JSON.stringify(accountsOf(identities), undefined, 1)}\n`;
}

function parsed(text: string): Identity | undefined {
  try {
    return asIdentity(JSON.parse(text));
  } catch {
    return undefined;
  }
}
