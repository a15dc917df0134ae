/** Versions remembered; the longest unused one goes first. */
const VERSIONS_MAX = 10_000;

const COUNTED = /^(\D*)(\d{1,15})$/;

/** The newest snapshot that each target answered with, by scope (spec 5.9). */
export class SnapshotVersions {
  readonly #newest = new Map<string, number | string>();

  /** The newer version that was answered before, if there is one; this one is the newest from here on. */
  answer(key: string, version: unknown): number | string | undefined {
    if (typeof version !== "number" && typeof version !== "string") return undefined;
    const before = this.#newest.get(key);
    this.#newest.delete(key);
    this.#newest.set(key, version);
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
