import { notOld } from "./forget.ts";

/** Versions remembered; the longest unused one goes first. */
const VERSIONS_MAX = 10_000;

const COUNTED = /^(\D*)(\d{1,15})$/;

/** The newest snapshot that each target answered with lately, by scope (spec 5.9). */
export class SnapshotVersions {
  readonly #newest = new Map<string, { readonly version: number | string; readonly at: number }>();

  /** The newer version that was answered before, if there is one; this one is the newest from here on. */
  answer(
    key: string,
    version: unknown,
    { at, retentionMs }: { at: number; retentionMs: number },
  ): number | string | undefined {
    if (typeof version !== "number" && typeof version !== "string") return undefined;
    const before = notOld(this.#newest.get(key), at - retentionMs)?.version;
    this.#newest.delete(key);
    this.#newest.set(key, { version, at });
    if (this.#newest.size > VERSIONS_MAX) {
      for (const oldest of this.#newest.keys()) {
        this.#newest.delete(oldest);
        break;
      }
    }
    return before !== undefined && isNewer(before, version) ? before : undefined;
  }
}

/** Whether one is certainly newer: numbers, or equal words that count. */
function isNewer(one: number | string, other: number | string): boolean {
  if (typeof one === "number" && typeof other === "number") return one > other;
  const [, wordOne, countOne] = COUNTED.exec(String(one)) ?? [];
  const [, wordOther, countOther] = COUNTED.exec(String(other)) ?? [];
  return wordOne !== undefined && wordOne === wordOther && Number(countOne) > Number(countOther);
}
