/** Entries on their way to one reader, as the log has them, within what one message holds. */
import { HEADER, type StoredMessage } from "@harmovela/bus";
import type { JsonObject } from "@harmovela/failure";

/**
 * Characters of one page: little enough that pages of many readers do not hold up each other. The first
 * entry always fits: the largest one in base64 is shorter than the largest answer.
 */
const PAGE_CHARS_MAX = 512 * 1024;
/** Names of fields, quotes and numbers of an entry. */
const ENTRY_CHARS = 128;

export class ReplayPage {
  readonly #max: number;
  readonly #messages: StoredMessage[] = [];
  #chars = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#messages.length;
  }
  get isFull(): boolean {
    return this.size >= this.#max;
  }

  /** Whether there was room for it. */
  add(message: StoredMessage): boolean {
    const chars = charsOf(message);
    if (this.isFull || (this.size > 0 && this.#chars + chars > PAGE_CHARS_MAX)) return false;
    this.#chars += chars;
    this.#messages.push(message);
    return true;
  }

  /** Those from a position on, in order. */
  entriesFrom(first: number): JsonObject[] {
    return this.#messages.filter(({ seq }) => seq >= first).map(toEntry);
  }
}

function toEntry(message: StoredMessage): JsonObject {
  const { seq, time, subject, data } = message;
  return { seq, time, subject, headers: headersOf(message), data: base64Of(data) };
}

function headersOf(message: StoredMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of Object.values(HEADER)) {
    const value = message.header(name);
    if (value !== "") headers[name] = value;
  }
  return headers;
}

function charsOf(message: StoredMessage): number {
  let chars = ENTRY_CHARS + message.subject.length + Math.ceil(message.data.length / 3) * 4;
  for (const [name, value] of Object.entries(headersOf(message)))
    chars += name.length + JSON.stringify(value).length;
  return chars;
}

function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}
