/**
 * The keys of a stack in which nobody is who he says he is unless he proves it: they lie in the folder
 * `keys` of its store, readable by their owner alone, beside the accounts that the server includes and the
 * grants that the services read.
 *
 * A store is with keys or without for good: the server keeps the streams of each account apart, so with the
 * other setting it would look empty, and what was said by anybody would count as proved.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { authFromFile, type BusAuth } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { CommandFailure } from "../command-failure.ts";
import { enrol, keyFile } from "../identity/enrol.ts";
import { grantsFileOf } from "../identity/grants-file.ts";
import { type CONNECTIONS, candidatesOf, ENROLLABLE, OPERATOR } from "../identity/own-services.ts";

export interface StackKeys {
  /** Accounts and permissions, which the server includes; `harmovela agent` changes it. */
  readonly config: string;
  /** What agents may do, kept in step with it. */
  readonly grants: string;
  /** The key file of somebody who may do everything. */
  readonly operator: string;
  /** What a connection of the service of this domain proves itself with. */
  authOf(domain: Domain, connection: (typeof CONNECTIONS)[number]): BusAuth;
}

const FOLDER = "keys";
const ACCOUNTS = "agents.conf";
/** Where nats-server keeps its streams in a store. */
const STREAMS = "jetstream";

/**
 * The keys of a store, made when it is new. Throws a CommandFailure when the store has been used without,
 * and `invalid_argument` naming a key file that is not there any more.
 */
export function openStackKeys(storeDir: string): StackKeys {
  const folder = join(storeDir, FOLDER);
  if (!existsSync(folder)) {
    if (existsSync(join(storeDir, STREAMS))) {
      throw new CommandFailure(
        `${storeDir} holds what anybody said under any name; take another --store for a stack with keys`,
      );
    }
    makeKeys(storeDir, folder);
  }
  const config = join(folder, ACCOUNTS);
  return {
    config,
    grants: grantsFileOf(config),
    operator: join(folder, keyFile([OPERATOR])),
    authOf: (domain, connection) =>
      authFromFile(join(folder, keyFile(["service", domain, connection]))),
  };
}

/** Throws a CommandFailure when the store belongs to a stack with keys. */
export function assertWithoutKeys(storeDir: string): void {
  if (!existsSync(join(storeDir, FOLDER))) return;
  throw new CommandFailure(
    `${storeDir} belongs to a stack with keys: add --secure, or take another --store`,
  );
}

/** All of them or none: whoever is killed in the middle leaves a folder that nobody looks into. */
function makeKeys(storeDir: string, folder: string): void {
  mkdirSync(storeDir, { recursive: true });
  const aside = mkdtempSync(join(storeDir, `${FOLDER}.new-`));
  try {
    enrol(join(aside, ACCOUNTS), ENROLLABLE.flatMap(candidatesOf));
    renameSync(aside, folder);
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    throw error;
  }
}
