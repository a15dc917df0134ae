/** What broke a promise once, as small as it could be made; the tests give it to the target again. */
import { hash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Finding } from "./fuzz-run.ts";

const FOLDER = fileURLToPath(new URL("cases/", import.meta.url));

export interface Case extends Finding {
  name: string;
}

/** In the order of their names. */
export function storedCases(): Case[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => ({
      name,
      ...(JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Finding),
    }));
}

/** Its file, named after target and content. */
export function storeCase(finding: Finding): string {
  const name = `${finding.target}-${hash("sha256", JSON.stringify(finding)).slice(0, 12)}.json`;
  const path = join(FOLDER, name);
  writeFileSync(path, `${JSON.stringify(finding, undefined, 2)}\n`);
  return path;
}
