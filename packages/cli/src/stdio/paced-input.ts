/**
 * Input that keeps the pauses with which it came. It listens from the moment it is made, also while the
 * services still start: whoever wrote a line, waited and wrote the next one meant the wait, and a
 * timeout in between must have its time.
 */
import type { Readable } from "node:stream";

/** Read ahead at most so much, bytes; then the writer waits. */
const AHEAD_BYTES_MAX = 1024 * 1024;

interface Chunk {
  bytes: Uint8Array;
  at: number;
}

export class PacedInput implements AsyncIterable<Uint8Array> {
  readonly #stream: Readable;
  readonly #chunks: Chunk[] = [];
  #ahead = 0;
  #isOver = false;
  #failure: unknown;
  #onChange: () => void = () => {};

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on("data", (bytes: Uint8Array) => {
      this.#chunks.push({ bytes, at: performance.now() });
      this.#ahead += bytes.length;
      if (this.#ahead > AHEAD_BYTES_MAX) stream.pause();
      this.#onChange();
    });
    const end = (failure?: unknown) => {
      this.#isOver = true;
      this.#failure ??= failure;
      this.#onChange();
    };
    stream.once("end", () => end());
    stream.once("close", () => end());
    stream.once("error", end);
  }

  /** Each chunk no sooner after the one before than it came after it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    let before: { at: number; handedOn: number } | undefined;
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk === undefined) {
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#isOver) return;
        await new Promise<void>((resolve) => {
          this.#onChange = resolve;
        });
        continue;
      }
      this.#ahead -= chunk.bytes.length;
      if (this.#ahead <= AHEAD_BYTES_MAX / 2) this.#stream.resume();
      if (before !== undefined) {
        const early = chunk.at - before.at - (performance.now() - before.handedOn);
        if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      }
      before = { at: chunk.at, handedOn: performance.now() };
      yield chunk.bytes;
    }
  }
}
