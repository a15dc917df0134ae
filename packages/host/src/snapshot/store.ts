/**
 * Snapshots in the bucket, and how far a log may be trimmed (architecture, section 6).
 *
 * S1 A snapshot counts when it was read back: those put here at once, those of others when they are needed.
 *    What cannot be read is removed; what is of another version is left to whoever can.
 * S2 A log is trimmed only below the second newest snapshot of its own service and of every observer.
 */
import type { BlobInfo, Blobs } from "@harmovela/bus";
import type { Domain, SnapshotSpec } from "@harmovela/envelope";
import type { FoldRecord } from "../fold.ts";
import {
  type Cut,
  isReadable,
  type Packing,
  readSnapshot,
  type SnapshotTitle,
  snapshotName,
  snapshotNotes,
  titleOf,
} from "./format.ts";

/** Kept of each domain; what is older serves nobody. */
const KEPT = 2;

export interface StoredSnapshot {
  title: SnapshotTitle;
  bytes: number;
}

export interface RestoredSnapshot {
  title: SnapshotTitle;
  record: FoldRecord;
}

export class SnapshotStore<State> {
  readonly #blobs: Blobs;
  readonly #domain: Domain;
  readonly #spec: SnapshotSpec<State>;
  readonly #packing: Packing;
  /** Names of those that were read. */
  readonly #good = new Set<string>();

  constructor(parts: {
    blobs: Blobs;
    domain: Domain;
    spec: SnapshotSpec<State>;
    packing: Packing;
  }) {
    this.#blobs = parts.blobs;
    this.#domain = parts.domain;
    this.#spec = parts.spec;
    this.#packing = parts.packing;
  }

  /** Says, for those who trim, that this domain folds those logs too. */
  async registerObserver(observed: readonly Domain[]): Promise<void> {
    for (const domain of observed) {
      await this.#blobs.put(observerName(domain, this.#domain), new Uint8Array(0));
    }
  }

  /** The newest one that can be used, and why newer ones could not be. */
  async newest(): Promise<{
    found: RestoredSnapshot | undefined;
    unusable: string[];
  }> {
    const unusable: string[] = [];
    for (const { title } of (await this.#own()).toReversed()) {
      const found = await this.#read(title);
      if (typeof found !== "string") return { found, unusable };
      unusable.push(`${snapshotName(title)}: ${found}`);
    }
    return { found: undefined, unusable };
  }

  /** S1. Throws when what comes back is something else. */
  async put(cut: Cut): Promise<StoredSnapshot> {
    const { title } = cut;
    const name = snapshotName(title);
    const data = await this.#packing.pack(cut.text);
    await this.#blobs.put(name, data, snapshotNotes(title));
    const stored = await this.#blobs.get(name);
    if (stored === undefined || Buffer.compare(stored, data) !== 0) {
      await this.#blobs.remove(name);
      throw new Error(`snapshot ${name} is not stored as it was written`);
    }
    this.#good.add(name);
    return { title, bytes: data.length };
  }

  /** Removes all but the newest ones. */
  async prune(): Promise<void> {
    for (const { title } of (await this.#own()).slice(0, -KEPT)) {
      await this.#blobs.remove(snapshotName(title));
    }
  }

  /** S2: entries below this position are needed by nobody; 0 when all are. */
  async needless(): Promise<number> {
    const blobs = await this.#blobs.list();
    const own = secondNewest(this.#usable(snapshotsOf(blobs, this.#domain)));
    if (own === undefined || !(await this.#isGood(own))) return 0;
    const positions = [own.position];
    for (const observer of observersOf(this.#domain, blobs)) {
      positions.push(secondNewest(snapshotsOf(blobs, observer))?.seen[this.#domain] ?? 0);
    }
    return Math.min(...positions);
  }

  /** S1. */
  async #isGood(title: SnapshotTitle): Promise<boolean> {
    const name = snapshotName(title);
    if (this.#good.has(name)) return true;
    if (typeof (await this.#read(title)) !== "string") return true;
    await this.#blobs.remove(name);
    return false;
  }

  /** What it holds, or why it cannot be used. */
  async #read(title: SnapshotTitle): Promise<RestoredSnapshot | string> {
    const name = snapshotName(title);
    const data = await this.#blobs.get(name);
    if (data === undefined) return "it is gone";
    try {
      const read = await readSnapshot(data, this.#spec, this.#packing);
      this.#good.add(name);
      return read;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  #usable(snapshots: StoredSnapshot[]): StoredSnapshot[] {
    return snapshots.filter(({ title }) => isReadable(title, this.#spec));
  }

  async #own(): Promise<StoredSnapshot[]> {
    return snapshotsOf(await this.#blobs.list(), this.#domain);
  }
}

/** Oldest first. */
function snapshotsOf(blobs: BlobInfo[], domain: Domain): StoredSnapshot[] {
  return blobs
    .flatMap((blob) => {
      const title = titleOf(domain, blob);
      return title === undefined ? [] : [{ title, bytes: blob.bytes }];
    })
    .sort((a, b) => a.title.position - b.title.position);
}

function secondNewest(snapshots: StoredSnapshot[]): SnapshotTitle | undefined {
  return snapshots.at(-2)?.title;
}

function observerName(observed: Domain, observer: Domain): string {
  return `observer.${observed}.${observer}`;
}

function observersOf(observed: Domain, blobs: BlobInfo[]): Domain[] {
  const prefix = observerName(observed, "" as Domain);
  return blobs
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name }) => name.slice(prefix.length) as Domain);
}
