/** A page of a log as a service answers it. */
import { logStream, type StoredMessage } from "@harmovela/bus";
import type { Domain, Instant } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { parseCursor } from "./cursor.ts";
import { isObject } from "./rejected-error.ts";

export interface ReplayPage {
  messages: StoredMessage[];
  /** Up to here the page is whole. */
  next: number;
  /** How far the log went when it was asked. */
  end: number;
  /** Where it began. */
  first: number;
  /** Positions up to here were gone before the page could be read; 0 for none. */
  trimmedTo: number;
}

/** Entries one page may hold. */
export const PAGE_ENTRIES_MAX = 256;

/** Throws `internal_error` when it is no page that goes on after a position. */
export function toReplayPage(result: unknown, domain: Domain, after: number): ReplayPage {
  if (!isObject(result) || !Array.isArray(result.entries)) throw notAPage();
  const messages = result.entries.map(toMessage);
  const page = {
    messages,
    next: positionIn(result.next, domain),
    end: positionIn(result.end, domain),
    first: positionIn(result.first, domain),
    trimmedTo: isObject(result.gap) ? Number(result.gap.to) : 0,
  };
  let last = after;
  for (const { seq } of messages) {
    if (!(seq > last)) throw notAPage();
    last = seq;
  }
  if (page.next < last || page.end < page.next || !(page.trimmedTo <= page.next)) throw notAPage();
  return page;
}

function toMessage(entry: unknown): StoredMessage {
  if (!isObject(entry)) throw notAPage();
  const { seq, time, subject, headers, data } = entry;
  const isWhole = typeof subject === "string" && typeof data === "string" && isObject(headers);
  if (!isWhole || !Number.isSafeInteger(seq)) throw notAPage();
  return {
    seq: Number(seq),
    time: Number(time) as Instant,
    subject,
    data: Buffer.from(data, "base64"),
    header: (name) => {
      const value = Object.hasOwn(headers, name) ? headers[name] : "";
      return typeof value === "string" ? value : "";
    },
  };
}

function positionIn(value: unknown, domain: Domain): number {
  const position = typeof value === "string" ? parseCursor(value) : undefined;
  if (position?.domain === domain) return position.seq;
  throw new HarmovelaError("internal_error", `that is no position in ${logStream(domain)}`);
}

function notAPage(): HarmovelaError {
  return new HarmovelaError("internal_error", "the answer is no page of the log");
}
