/** Keys that connections prove themselves with: NKeys and the files that hold them. */
import { readFileSync } from "node:fs";
import { HarmovelaError } from "@harmovela/failure";
import { nkeys } from "@nats-io/transport-node";
import type { BusAuth } from "./jetstream/connect.ts";

export interface UserKey {
  /** For the server's configuration: `U…`. */
  publicKey: string;
  /** The secret, `SU…`. */
  seed: string;
}

/** A fresh NKey of a user. */
export function newUserKey(): UserKey {
  const pair = nkeys.createUser();
  return { publicKey: pair.getPublicKey(), seed: new TextDecoder().decode(pair.getSeed()) };
}

const JWT_MARK = "BEGIN NATS USER JWT";
const SEED = /^SU[A-Z2-7]{56}$/;

/**
 * What a file proves: a user's NKey seed on a line of its own, or NATS credentials (JWT and seed). It is
 * read again at every reconnect, so that what was renewed is picked up. Throws `invalid_argument` naming
 * the file when it cannot be read or is neither.
 */
export function authFromFile(path: string): BusAuth {
  const isCreds = readKeyFile(path).includes(JWT_MARK);
  if (isCreds) return { creds: () => Buffer.from(readKeyFile(path)) };
  seedOf(path);
  return { nkeySeed: () => Buffer.from(seedOf(path)) };
}

function seedOf(path: string): string {
  const seed = readKeyFile(path)
    .split("\n")
    .map((line) => line.trim())
    .find((line) => SEED.test(line));
  if (seed !== undefined) return seed;
  throw new HarmovelaError(
    "invalid_argument",
    `${path}: neither a user's NKey seed nor NATS credentials`,
  );
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new HarmovelaError("invalid_argument", `${path}: the file cannot be read`, { cause });
  }
}
