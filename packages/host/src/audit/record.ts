/** What is kept of one decision (spec 9.9): who, what, on what, with what outcome, when. Never a payload, token or signature. */
import { decodeToken } from "@harmovela/bus";
import {
  type Envelope,
  type EventEntry,
  formatInstant,
  type Instant,
  isId,
  type LogEntry,
} from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import { refusedId } from "../fold.ts";

export interface AuditRecord {
  /** RFC 3339: on the broker's clock; of a question on that of the process that was asked. */
  at: string;
  /** `derived`: the service said it by itself. */
  verdict: "accepted" | "refused" | "derived";
  /** As the connection proved it; the tenant is that of the message. */
  source: string;
  /** Whom the envelope named instead. */
  actor?: string;
  event_id?: string;
  type?: string;
  /** Of a question: what was asked. */
  verb?: string;
  target?: string;
  task_id?: string;
  session_id?: string;
  subscription_id?: string;
  /** Of a question about something else. */
  key?: string;
  /** Of a refusal. */
  code?: string;
  check?: string;
  /** Position in the log of the domain. */
  position?: number;
  /** So many like this one. */
  count?: number;
  /** Asked without crossing the border of a tenant's account. */
  by?: "operator";
}

/** A record with the tenant that it is about. */
export interface Audited {
  tenant: string;
  record: AuditRecord;
}

/** What a log entry says was decided; nothing where it decides nothing about anybody. A function of the entry. */
export function recordsOf(entry: LogEntry): Audited[] {
  const { tenant } = entry;
  switch (entry.kind) {
    case "event":
      return [{ tenant, record: eventRecord(entry) }];
    case "begun": {
      const verdict = "in" in entry.cause ? "accepted" : "derived";
      return [{ tenant, record: described(entry, verdict, entry.plan.envelope) }];
    }
    case "token_issued": {
      const record = begin(entry, "accepted", entry.body.iss);
      record.verb = "token";
      name(record, "target", entry.body.sub);
      name(record, "task_id", entry.body.task_id);
      return [{ tenant, record }];
    }
    case "refused":
      return countedRecords(entry, entry.body.counts);
    default:
      return [];
  }
}

function eventRecord(entry: EventEntry): AuditRecord {
  const { envelope, cause } = entry;
  const isService = envelope.source.startsWith("service:");
  if (isService && envelope.type.endsWith(".rejected")) return refusalRecord(entry);
  return described(entry, isService && "owed" in cause ? "derived" : "accepted", envelope);
}

function refusalRecord(entry: EventEntry): AuditRecord {
  const { envelope, about } = entry;
  const error = objectIn(envelope.payload, "error");
  const details = objectIn(error, "details");
  const record = begin(entry, "refused", envelope.target ?? "");
  name(record, "event_id", refusedId(envelope));
  name(record, "type", about?.type);
  name(record, "target", about?.target);
  name(record, "actor", about?.actor);
  nameResource(record, envelope);
  name(record, "code", error.code);
  name(record, "check", details.check ?? details.reason);
  return record;
}

function described(
  entry: LogEntry,
  verdict: AuditRecord["verdict"],
  envelope: Envelope,
): AuditRecord {
  const { id, type, source, target, actor_id: actor } = envelope;
  const record = begin(entry, verdict, source);
  record.event_id = id;
  record.type = type;
  name(record, "target", target);
  if (actor !== source) name(record, "actor", actor);
  nameResource(record, envelope);
  return record;
}

/** One record is made for every entry, so no object is made beside it. */
function begin(
  { at, seq: position }: LogEntry,
  verdict: AuditRecord["verdict"],
  source: string,
): AuditRecord {
  return { at: instantText(at), position, verdict, source };
}

let lastInstant: Instant = 0;
let lastText = formatInstant(0);

/** Entries of one millisecond are many. */
function instantText(at: Instant): string {
  if (at !== lastInstant) {
    lastText = formatInstant(at);
    lastInstant = at;
  }
  return lastText;
}

function nameResource(record: AuditRecord, { task_id, session_id, payload }: Envelope): void {
  const inPayload = isObject(payload) ? payload : undefined;
  name(record, "task_id", task_id ?? inPayload?.task_id);
  name(record, "session_id", session_id ?? inPayload?.session_id);
  name(record, "subscription_id", inPayload?.subscription_id);
}

/** Refusals beyond the rate at which each gets an entry of its own. */
function countedRecords(entry: LogEntry, counts: JsonValue | undefined): Audited[] {
  if (!isObject(counts)) return [];
  return Object.entries(counts).flatMap(([owner, count]) => {
    const [tenant, source] = owner.split(" ").map(decodeToken);
    if (tenant === undefined || source === undefined || typeof count !== "number") return [];
    const record = begin(entry, "refused", source);
    record.count = count;
    return [{ tenant, record }];
  });
}

/** What is longer brings something with it that is not worth reading twice. */
const QUESTION_BYTES_MAX = 4_096;

/** What a question was about, and how it was answered. */
export function askedRecord(
  asker: { source: string; verb: string; at: Date; isOperator: boolean },
  question: Uint8Array,
  answer: JsonObject,
): AuditRecord {
  const error = objectIn(answer, "error");
  const { source, verb, at, isOperator } = asker;
  const verdict = answer.error === undefined ? "accepted" : "refused";
  const record: AuditRecord = { at: at.toISOString(), verdict, source };
  // No read has a longer name.
  name(record, "verb", verb);
  const params = paramsIn(question);
  for (const field of ["task_id", "session_id", "event_id", "key"] as const) {
    name(record, field, params[field]);
  }
  name(record, "code", error.code);
  name(record, "check", objectIn(error, "details").check);
  if (isOperator) record.by = "operator";
  return record;
}

function paramsIn(question: Uint8Array): JsonObject {
  if (question.length > QUESTION_BYTES_MAX) return {};
  try {
    const params = JSON.parse(new TextDecoder().decode(question)) as JsonValue;
    return isObject(params) ? params : {};
  } catch {
    // It was refused for that; there is nothing to name.
    return {};
  }
}

type Name =
  | "actor"
  | "event_id"
  | "type"
  | "verb"
  | "target"
  | "task_id"
  | "session_id"
  | "subscription_id"
  | "key"
  | "code"
  | "check";

/** Only what is short enough to be a name is kept. */
function name(record: AuditRecord, field: Name, value: unknown): void {
  if (value !== undefined && isId(value)) record[field] = value;
}

function objectIn(value: JsonValue | undefined, field: string): JsonObject {
  const found = isObject(value) ? value[field] : undefined;
  return isObject(found) ? found : {};
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
