import { HEADER, type StoredMessage } from "@harmovela/bus";

/** One stored message of a log stream, as it was read. */
export interface StoredRecord {
  seq: number;
  /** Store time on the broker, ms since the epoch. */
  time: number;
  subject: string;
  headers: Readonly<Record<string, string>>;
  data: Uint8Array | string;
}

/** The record of a message read from a bus. */
export function recordOf(message: StoredMessage): StoredRecord {
  const headers: Record<string, string> = {};
  for (const name of Object.values(HEADER)) {
    const value = message.header(name);
    if (value !== "") headers[name] = value;
  }
  const { seq, time, subject, data } = message;
  return { seq, time, subject, headers, data };
}

/** One line of a log file (NDJSON): the record with its data as the JSON string `body`. */
export function formatRecord(record: StoredRecord): string {
  const { seq, time, subject, headers, data } = record;
  const body = typeof data === "string" ? data : new TextDecoder().decode(data);
  return JSON.stringify({ seq, time, subject, headers, body });
}

/** Reads a line that `formatRecord` wrote; undefined when it is not one. */
export function parseRecord(line: string): StoredRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { seq, time, subject, headers, body } = value;
  if (!Number.isSafeInteger(seq) || typeof time !== "number") return undefined;
  if (typeof subject !== "string" || typeof body !== "string" || !isObject(headers)) {
    return undefined;
  }
  const texts: Record<string, string> = {};
  for (const [name, text] of Object.entries(headers)) {
    if (typeof text !== "string") return undefined;
    texts[name] = text;
  }
  return { seq: seq as number, time, subject, headers: texts, data: body };
}

/** A JSON object, and neither an array nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
