/** The bucket of snapshots of the memory server. */
import { HarmovelaError } from "@harmovela/failure";
import type { BlobInfo } from "../port.ts";
import { BLOB_NOTES_MAX, blobInfo } from "../streams.ts";

export class MemoryBlobs {
  readonly #blobs = new Map<string, { data: Uint8Array; notes: Record<string, string> }>();

  put(name: string, data: Uint8Array, notes: Record<string, string> = {}): void {
    if (JSON.stringify(notes).length > BLOB_NOTES_MAX) {
      throw new HarmovelaError("invalid_argument", "the notes of a blob are too long");
    }
    this.#blobs.set(name, { data: data.slice(), notes: { ...notes } });
  }

  get(name: string): Uint8Array | undefined {
    return this.#blobs.get(name)?.data.slice();
  }

  list(): BlobInfo[] {
    return [...this.#blobs]
      .map(([name, { data, notes }]) => blobInfo(name, data.length, notes))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  remove(name: string): void {
    this.#blobs.delete(name);
  }
}
