/** Whole logs, from a server up to where they end now, or from a file. */
import { createReadStream } from "node:fs";
import { type Bus, DOMAINS, logStream, parseControlSubject, parseLogSubject } from "@harmovela/bus";
import { parseRecord, recordOf, type StoredRecord } from "@harmovela/check";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { CommandFailure } from "./command-failure.ts";
import { readLines } from "./stdio/lines.ts";

const TAKEN_MAX = 256;
const STALL_MS_MAX = 10_000;
/** Longest line of a file, bytes: the largest message, escaped. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;

export interface LogSource {
  domain: Domain;
  stream: string;
  /** It begins in the middle: older entries have been trimmed. */
  lenient: boolean;
  /** From its beginning, each time anew. */
  read(): AsyncIterable<StoredRecord>;
  /** As far as another log may have seen it. */
  readSeen?(): AsyncIterable<StoredRecord>;
}

/** The logs that the server holds, up to where they end now. */
export async function logsOfServer(bus: Bus): Promise<LogSource[]> {
  const sources: LogSource[] = [];
  for (const domain of DOMAINS) {
    const stream = logStream(domain);
    const state = await bus.streamState(stream);
    if (state === undefined) continue;
    const { firstSeq } = state;
    const last = lastOf(state);
    const read = () => readUpTo(bus, stream, last);
    // What is in one log by now may have seen what came into another one meanwhile.
    const readSeen = () => readToEnd(bus, stream);
    sources.push({ domain, stream, lenient: firstSeq > 1, read, readSeen });
  }
  return sources;
}

const lastOf = ({ messages, lastSeq }: { messages: number; lastSeq: number }): number =>
  messages === 0 ? 0 : lastSeq;

/** Up to where it ends when it is first asked. */
async function* readToEnd(bus: Bus, stream: string): AsyncGenerator<StoredRecord> {
  const state = await bus.streamState(stream);
  if (state !== undefined) yield* readUpTo(bus, stream, lastOf(state));
}

async function* readUpTo(bus: Bus, stream: string, last: number): AsyncGenerator<StoredRecord> {
  let wake: () => void = () => {};
  const reader = bus.openReader(stream, { after: 0, onReady: () => wake() });
  try {
    while (reader.position < last) {
      const messages = reader.take(TAKEN_MAX);
      for (const message of messages) {
        if (message.seq > last) return;
        yield recordOf(message);
      }
      if (messages.length === 0) {
        await new Promise<void>((resolve, reject) => {
          const late = new HarmovelaError("timeout", `${stream} cannot be read to its end`);
          const timer = setTimeout(() => reject(late), STALL_MS_MAX);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          if (reader.buffered > 0) wake();
        });
      }
    }
  } finally {
    await reader.close();
  }
}

/** The log in a file that `check --save` wrote; one domain for each file. */
export async function logOfFile(path: string): Promise<LogSource> {
  const records = recordsOf(path);
  const first = await records.next();
  await records.return(undefined);
  if (first.done === true) throw new CommandFailure(`${path}: no entries`);
  const { subject, seq } = first.value;
  const domain = (parseLogSubject(subject) ?? parseControlSubject(subject))?.domain;
  if (domain === undefined) throw new CommandFailure(`${path}: the first entry is of no log`);
  return {
    domain,
    stream: logStream(domain),
    lenient: seq > 1,
    read: () => recordsOf(path),
  };
}

async function* recordsOf(path: string): AsyncGenerator<StoredRecord, undefined> {
  try {
    for await (const { number, bytes } of readLines(createReadStream(path), LINE_BYTES_MAX)) {
      const record = bytes && parseRecord(new TextDecoder().decode(bytes));
      if (!record) throw new CommandFailure(`${path}: line ${number} is no log entry`);
      yield record;
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(`${path}: ${error instanceof Error ? error.message : "unreadable"}`);
  }
  return undefined;
}
