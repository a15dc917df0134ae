import { statSync } from "node:fs";

/** A file that operators edit is looked at so often, milliseconds: what was read is at most this old. */
export const LOOK_EVERY_MS = 1_000;

/** Changes whenever the file does. */
export function versionOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
