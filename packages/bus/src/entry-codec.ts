/**
 * The stored form of a log entry (architecture, section 3): the frame in headers, the envelope or
 * the control body as JSON. Reading is the fold's side; the host writes.
 */
import type {
  Cause,
  Domain,
  EntryFrame,
  Envelope,
  LogEntry,
  ObservedEntry,
  Plan,
  TokenIssue,
} from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { HEADER } from "./headers.ts";
import type { StoredMessage } from "./port.ts";
import { decodeToken } from "./subjects.ts";

/** Host-wide control entries belong to no tenant. */
export const NO_TENANT = "-";

const DIGITS = /^(0|[1-9]\d{0,15})$/;

const toNumber = (text: string): number | undefined =>
  DIGITS.test(text) ? Number(text) : undefined;

/** `Hv-Cause`: `in:<intake sequence>` or `owed:<id>`. */
export function encodeCause(cause: Cause): string {
  return "in" in cause ? `in:${cause.in}` : `owed:${escapeSpace(cause.owed)}`;
}

/** White space as `%XX`: whoever reads a header cuts it off the ends, and an id may begin or end with it. */
function escapeSpace(id: string): string {
  return id.replace(/[\s%]/g, (character) => encodeURIComponent(character));
}

function unescapeSpace(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** JSON without a byte that a header line could misread. */
function toAscii(json: string): string {
  return json.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function decodeCause(text: string): Cause | undefined {
  if (text.startsWith("in:")) {
    const seq = toNumber(text.slice(3));
    return seq === undefined ? undefined : { in: seq };
  }
  const owed = text.startsWith("owed:") ? unescapeSpace(text.slice(5)) : undefined;
  return owed === undefined ? undefined : { owed };
}

/** `Hv-Seen`: `domain:position` pairs joined by commas; "" when nothing is observed. */
export function encodeSeen(seen: EntryFrame["seen"]): string {
  return Object.entries(seen)
    .map(([domain, seq]) => `${domain}:${seq}`)
    .join(",");
}

function decodeSeen(text: string): EntryFrame["seen"] | undefined {
  const seen: Partial<Record<Domain, number>> = {};
  if (text === "") return seen;
  for (const pair of text.split(",")) {
    const colon = pair.indexOf(":");
    const seq = toNumber(pair.slice(colon + 1));
    if (colon < 1 || seq === undefined) return undefined;
    seen[pair.slice(0, colon) as Domain] = seq;
  }
  return seen;
}

/** The frame as headers. */
export function encodeFrame(
  frame: Pick<
    EntryFrame,
    "cause" | "at" | "epoch" | "prev" | "seen" | "digest" | "verdict" | "about"
  >,
): Record<string, string> {
  const headers: Record<string, string> = {
    [HEADER.cause]: encodeCause(frame.cause),
    [HEADER.at]: String(frame.at),
    [HEADER.epoch]: String(frame.epoch),
    [HEADER.prev]: String(frame.prev),
  };
  const seen = encodeSeen(frame.seen);
  if (seen !== "") headers[HEADER.seen] = seen;
  if (frame.digest !== undefined) headers[HEADER.digest] = frame.digest;
  if (frame.verdict !== undefined) headers[HEADER.verdict] = toAscii(JSON.stringify(frame.verdict));
  if (frame.about !== undefined) headers[HEADER.about] = toAscii(JSON.stringify(frame.about));
  return headers;
}

/** Which log a stored message belongs to and what its body is, from its subject alone. */
function kindOf(subject: string): { tenant: string; kind: string } | undefined {
  const tokens = subject.split(".", 5);
  const [root, tenantToken, area, , kind] = tokens;
  if (root !== "hv" || tenantToken === undefined || kind === undefined) return undefined;
  if (area !== "log" && area !== "ctl") return undefined;
  const tenant = tenantToken === NO_TENANT ? NO_TENANT : decodeToken(tenantToken);
  if (tenant === undefined) return undefined;
  return { tenant, kind: area === "log" ? "event" : kind };
}

/** A stored message whose headers have the form of an entry; its body is not looked at yet. */
export interface FramedMessage {
  frame: EntryFrame;
  /** "event", or the kind of control entry that the subject names. */
  kind: string;
  /** The whole entry; undefined when the subject names no kind there is. Throws when the body cannot be read. */
  entry(): LogEntry | undefined;
}

/**
 * The frame of a stored message; undefined when it does not have the form of an entry: then nobody
 * with the right to lead wrote it, and nothing else of it is worth believing.
 */
export function decodeFrame(message: StoredMessage): FramedMessage | undefined {
  const head = kindOf(message.subject);
  if (head === undefined) return undefined;
  const epoch = toNumber(message.header(HEADER.epoch));
  const prev = toNumber(message.header(HEADER.prev));
  const at = toNumber(message.header(HEADER.at));
  const cause = decodeCause(message.header(HEADER.cause));
  const seen = decodeSeen(message.header(HEADER.seen));
  if (epoch === undefined || prev === undefined || at === undefined) return undefined;
  if (cause === undefined || seen === undefined) return undefined;
  const frame: EntryFrame = { seq: message.seq, tenant: head.tenant, cause, at, epoch, prev, seen };
  const { kind } = head;
  return {
    frame,
    kind,
    entry: () => {
      const digest = message.header(HEADER.digest);
      const verdict = message.header(HEADER.verdict);
      if (digest !== "") frame.digest = digest;
      if (verdict !== "") frame.verdict = JSON.parse(verdict) as JsonObject;
      const about = message.header(HEADER.about);
      if (about !== "") frame.about = JSON.parse(about) as EntryFrame["about"];
      return withBody(frame, kind, JSON.parse(new TextDecoder().decode(message.data)));
    },
  };
}

/** The entry in a stored message; undefined when it has no form of one. A body that cannot be read throws. */
export function decodeEntry(message: StoredMessage): LogEntry | undefined {
  return decodeFrame(message)?.entry();
}

function withBody(frame: EntryFrame, kind: string, body: unknown): LogEntry | undefined {
  switch (kind) {
    case "event":
      return { ...frame, kind, envelope: body as Envelope };
    case "begun":
      return { ...frame, kind, plan: (body as { plan: Plan }).plan };
    case "obligation_failed": {
      const { id, reason } = body as { id: string; reason: string };
      return { ...frame, kind, id, reason };
    }
    case "token_issued":
      return { ...frame, kind, body: body as TokenIssue };
    case "observed":
      return { ...frame, kind, first: (body as ObservedEntry).first };
    case "epoch":
    case "position":
    case "refused":
    case "intake_gap":
    case "skipped":
      return { ...frame, kind, body: body as JsonObject };
    default:
      return undefined;
  }
}

/** The body of a control entry. */
export function encodeControlBody(entry: Exclude<LogEntry, { kind: "event" }>): Uint8Array {
  const body =
    entry.kind === "begun"
      ? { plan: entry.plan }
      : entry.kind === "obligation_failed"
        ? { id: entry.id, reason: entry.reason }
        : entry.kind === "observed"
          ? { first: entry.first }
          : entry.body;
  return new TextEncoder().encode(JSON.stringify(body));
}
