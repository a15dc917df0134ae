/** A message as a stream delivers it, read lazily from what the client received. */
import type { Msg } from "@nats-io/nats-core";
import { decodeBlock, headerValue } from "../header-block.ts";
import type { CoreMessage, StoredMessage } from "../port.ts";

/** Where a delivery stands: in the stream, in the consumer, and when it was stored. */
export interface DeliveryInfo {
  streamSeq: number;
  consumerSeq: number;
  /** Milliseconds. */
  time: number;
}

/**
 * Reads the reply subject of a delivery in both forms:
 * `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<ns>.<pending>` and the newer
 * `$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<ns>.<pending>[.<random>]`.
 */
export function parseDelivery(reply: string): DeliveryInfo | undefined {
  if (!reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const first = tokens.length === 9 ? 5 : tokens.length >= 11 ? 7 : 0;
  if (first === 0) return undefined;
  const streamSeq = Number(tokens[first]);
  const consumerSeq = Number(tokens[first + 1]);
  // Nanoseconds do not fit a number exactly; whole milliseconds do.
  const time = Number((tokens[first + 2] ?? "").slice(0, -6));
  if (!(streamSeq > 0 && consumerSeq > 0 && time >= 0)) return undefined;
  return { streamSeq, consumerSeq, time };
}

export class DeliveredMessage implements StoredMessage {
  readonly seq: number;
  readonly time: number;
  readonly #message: Msg;
  #block: string | undefined;

  constructor(message: Msg, info: DeliveryInfo) {
    this.seq = info.streamSeq;
    this.time = info.time;
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }
  get data(): Uint8Array {
    return this.#message.data;
  }
  header(name: string): string {
    this.#block ??= blockOf(this.#message);
    return headerValue(this.#block, name);
  }
}

export class ReceivedMessage implements CoreMessage {
  readonly #message: Msg;
  #block: string | undefined;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }
  get reply(): string {
    return this.#message.reply ?? "";
  }
  get data(): Uint8Array {
    return this.#message.data;
  }
  header(name: string): string {
    this.#block ??= blockOf(this.#message);
    return headerValue(this.#block, name);
  }
}

/**
 * The header block as text. The client's own decoding builds a map and validates each name again, at
 * several microseconds a message; the bytes are there, if in a field it does not declare.
 */
function blockOf(message: Msg): string {
  const { _rdata: bytes, _msg: head } = message as unknown as {
    _rdata?: unknown;
    _msg?: { hdr?: unknown };
  };
  const length = head?.hdr;
  if (bytes instanceof Uint8Array && typeof length === "number") {
    return length > 0 ? decodeBlock(bytes.subarray(0, length)) : "";
  }
  return message.headers === undefined ? "" : String(message.headers);
}
