/** Gives somebody a key: the secret goes into a file of its own, the rest into the server's. */
import { unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { encodeToken, newUserKey } from "@harmovela/bus";
import { CommandFailure } from "../command-failure.ts";
import { type Identity, isSameOne, labelOf } from "./identity.ts";
import { changeIdentities } from "./identity-file.ts";

type WithoutKey<T> = T extends unknown ? Omit<T, "key"> : never;
/** Somebody who has no key yet, and the names that its file is called by. */
export interface Candidate {
  identity: WithoutKey<Identity>;
  file: readonly string[];
}

const OWNER_ONLY = 0o600;

/**
 * Makes a key for each, all or none; the paths of the files that hold the secrets, beside the server's
 * file. Throws a CommandFailure when one of them is known or its file is there: no secret is overwritten.
 */
export function enrol(path: string, candidates: readonly Candidate[]): string[] {
  const written: string[] = [];
  try {
    changeIdentities(path, (known) => {
      const added = candidates.map(({ identity, file }): Identity => {
        const { publicKey, seed } = newUserKey();
        const complete = { ...identity, key: publicKey } as Identity;
        assertUnknown(known, complete);
        const secret = join(dirname(path), keyFile(file));
        writeSecret(secret, seed);
        written.push(secret);
        return complete;
      });
      return [...known, ...added];
    });
  } catch (error) {
    for (const secret of written) unlinkSync(secret);
    throw error;
  }
  return written;
}

/** Takes the right to connect away from whoever fits. Throws a CommandFailure when nobody does. */
export function strike(path: string, who: string, fits: (identity: Identity) => boolean): void {
  changeIdentities(path, (known) => {
    const left = known.filter((identity) => !fits(identity));
    if (left.length === known.length) throw new CommandFailure(`${path} knows no ${who}`);
    return left;
  });
}

function assertUnknown(known: readonly Identity[], identity: Identity): void {
  if (known.some((other) => isSameOne(other, identity))) {
    throw new CommandFailure(`${labelOf(identity)} has a key; remove it first to give it another`);
  }
}

function writeSecret(path: string, seed: string): void {
  try {
    writeFileSync(path, `${seed}\n`, { mode: OWNER_ONLY, flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "EEXIST" ? "the file is there, and no key is overwritten" : message;
    throw new CommandFailure(`${path}: ${why}`);
  }
}

/** The name of the file: tokens have no dots, so no two share one, and a slash leads to no other folder. */
export function keyFile(names: readonly string[]): string {
  return `${names.map((name) => encodeToken(name).replaceAll("/", "%2F")).join(".")}.nk`;
}
