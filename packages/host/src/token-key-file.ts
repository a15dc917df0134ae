/** The file that holds the keys for handoff tokens: a JWK set with private keys, readable by its owner alone. */
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { HarmovelaError } from "@harmovela/failure";
import { generateTokenKeys, openTokenKeys, type TokenKeySet, type TokenKeys } from "./tokens.ts";

const KEY_FILE = "handoff-keys.json";
const OWNER_ONLY = 0o600;

/** Where a store keeps the keys of its stack. */
export function tokenKeyFileIn(storeDir: string): string {
  return join(storeDir, KEY_FILE);
}

/**
 * Opens the keys of a file, which is created with a new key when there is none. Of several processes
 * that do so at once one wins and all get the same keys. Throws `invalid_argument` naming the file.
 */
export async function openTokenKeyFile(path: string): Promise<TokenKeys> {
  const stored = readKeySet(path);
  if (stored !== undefined) return await openTokenKeys(stored);
  createKeyFile(path, await generateTokenKeys());
  return await openTokenKeys(readKeySet(path) ?? unusable(path));
}

function readKeySet(path: string): TokenKeySet | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    return unusable(path);
  }
  try {
    const value: unknown = JSON.parse(text);
    const keys = (value as { keys?: unknown } | null)?.keys;
    if (Array.isArray(keys) && keys.every(isObject)) return { keys };
  } catch {
    // A text that is no JSON is as bad as one that is no key set.
  }
  return unusable(path);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function unusable(path: string): never {
  throw new HarmovelaError("invalid_argument", `${path} is no readable key set`);
}

/** Written aside and linked into place, so that nobody reads half of it. */
function createKeyFile(path: string, set: TokenKeySet): void {
  mkdirSync(dirname(path), { recursive: true });
  const aside = `${path}.${randomUUID()}`;
  writeFileSync(aside, `${JSON.stringify(set)}\n`, { mode: OWNER_ONLY, flag: "wx" });
  try {
    linkSync(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(aside);
  }
}
