/** NDJSON to a stream that may be slow or go away. */
import type { Writable } from "node:stream";

export interface LineWriter {
  write(bytes: Uint8Array): void;
  /** False while what was written waits to go out. */
  readonly hasRoom: boolean;
  /** Whoever read has gone (EPIPE): nothing is written any more. */
  readonly isBroken: boolean;
  /** Resolves when what was written has gone out, or never will. */
  flush(): Promise<void>;
}

const LINE_END = Buffer.from("\n");

/** `onRoom`: there is room again, or nobody reads any more. */
export function createLineWriter(stream: Writable, onRoom: () => void): LineWriter {
  let isBroken = false;
  let isFull = false;
  stream.on("error", () => {
    // The reader has gone; that is how a pipeline ends, and no failure of ours.
    isBroken = true;
    isFull = false;
    onRoom();
  });
  stream.on("drain", () => {
    isFull = false;
    onRoom();
  });
  return {
    write(bytes) {
      if (isBroken) return;
      isFull = !stream.write(Buffer.concat([oneLine(bytes), LINE_END]));
    },
    get hasRoom() {
      return !isFull;
    },
    get isBroken() {
      return isBroken;
    },
    flush: () =>
      new Promise((resolve) => {
        if (isBroken) resolve();
        else stream.write("", () => resolve());
      }),
  };
}

/** JSON without line ends: between its tokens they are white space, within strings they cannot stand. */
function oneLine(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(0x0a) && !bytes.includes(0x0d)) return bytes;
  return bytes.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte));
}
