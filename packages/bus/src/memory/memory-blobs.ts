/** A bucket of the memory server. */
import type { Instant } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { BlobInfo, BlobPage, StoredBlob } from "../port.ts";
import { BLOB_NOTES_MAX, blobInfo } from "../streams.ts";

interface Kept {
  data: Uint8Array;
  notes: Record<string, string>;
  at: Instant;
  /** Its place in the order of the bucket, from 1 on. */
  place: number;
}

export class MemoryBlobs {
  readonly #blobs = new Map<string, Kept>();
  readonly #now: () => Instant;
  /** What is put here is whole at once. */
  readonly incomplete = 0;
  #places = 0;
  #maxBytes = -1;

  constructor(now: () => Instant) {
    this.#now = now;
  }

  limit(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  put(name: string, data: Uint8Array, notes: Record<string, string> = {}): void {
    if (JSON.stringify(notes).length > BLOB_NOTES_MAX) {
      throw new HarmovelaError("invalid_argument", "the notes of a blob are too long");
    }
    if (this.#maxBytes >= 0 && this.#bytes + data.length > this.#maxBytes) {
      throw new HarmovelaError("store_full", "there is no room in the bucket");
    }
    this.#blobs.delete(name);
    this.#places += 1;
    const kept = { data: data.slice(), notes: { ...notes }, at: this.#now(), place: this.#places };
    this.#blobs.set(name, kept);
  }

  get(name: string): Uint8Array | undefined {
    return this.#blobs.get(name)?.data.slice();
  }

  list(): BlobInfo[] {
    return [...this.#blobs]
      .map(([name, { data, notes }]) => blobInfo(name, data.length, notes))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  page(from: number, limit: number): BlobPage {
    const blobs: StoredBlob[] = [];
    for (const [name, { data, notes, at, place }] of this.#blobs) {
      if (place < from) continue;
      if (blobs.length === limit) return { blobs, next: place };
      blobs.push({ ...blobInfo(name, data.length, notes), at });
    }
    return { blobs };
  }

  remove(name: string): void {
    this.#blobs.delete(name);
  }

  get #bytes(): number {
    let bytes = 0;
    for (const { data } of this.#blobs.values()) bytes += data.length;
    return bytes;
  }
}
