/** What is kept of one decision (spec 9.9): who, what, on what, with what outcome, when. Never a payload, token or signature. */
import { decodeToken } from "@harmovela/bus";
import { type Envelope, formatInstant, isId, type LogEntry } from "@harmovela/envelope";
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
  const { tenant, seq: position, at } = entry;
  const frame = { at: formatInstant(at), position };
  switch (entry.kind) {
    case "event":
      return [{ tenant, record: { ...eventRecord(entry), ...frame } }];
    case "begun": {
      const { envelope } = entry.plan;
      const verdict = "in" in entry.cause ? "accepted" : "derived";
      return [{ tenant, record: { verdict, ...describe(envelope), ...frame } }];
    }
    case "token_issued": {
      const { iss: source, sub: target, task_id } = entry.body;
      const record = { verdict: "accepted", source, verb: "token", target, task_id } as const;
      return [{ tenant, record: { ...record, ...frame } }];
    }
    case "refused":
      return countedRecords(entry.body.counts, frame);
    default:
      return [];
  }
}

type Undated = Omit<AuditRecord, "at">;

function eventRecord(entry: Extract<LogEntry, { kind: "event" }>): Undated {
  const { envelope, about = {}, cause } = entry;
  const refused = refusedId(envelope);
  if (envelope.type.endsWith(".rejected") && envelope.source.startsWith("service:")) {
    const error = objectIn(envelope.payload, "error");
    const details = objectIn(error, "details");
    return {
      verdict: "refused",
      source: envelope.target ?? "",
      ...named("event_id", refused),
      ...named("type", about.type),
      ...named("target", about.target),
      ...named("actor", about.actor),
      ...resourceOf(envelope),
      ...named("code", error.code),
      ...named("check", details.check ?? details.reason),
    };
  }
  const isOwn = envelope.source.startsWith("service:") && "owed" in cause;
  return { verdict: isOwn ? "derived" : "accepted", ...describe(envelope) };
}

function describe(envelope: Envelope): Omit<Undated, "verdict"> {
  const { id: event_id, type, source, target, actor_id: actor } = envelope;
  return {
    source,
    event_id,
    type,
    ...named("target", target),
    ...(actor === source ? {} : named("actor", actor)),
    ...resourceOf(envelope),
  };
}

function resourceOf({ task_id, session_id, payload }: Envelope): Partial<AuditRecord> {
  const inPayload = isObject(payload) ? payload : {};
  return {
    ...named("task_id", task_id ?? inPayload.task_id),
    ...named("session_id", session_id ?? inPayload.session_id),
    ...named("subscription_id", inPayload.subscription_id),
  };
}

/** Refusals beyond the rate at which each gets an entry of its own. */
function countedRecords(
  counts: JsonValue | undefined,
  frame: { at: string; position: number },
): Audited[] {
  if (!isObject(counts)) return [];
  return Object.entries(counts).flatMap(([name, count]) => {
    const [tenant, source] = name.split(" ").map(decodeToken);
    if (tenant === undefined || source === undefined || typeof count !== "number") return [];
    return [{ tenant, record: { verdict: "refused", source, count, ...frame } as const }];
  });
}

/** What a question was about, and how it was answered. */
export function askedRecord(
  asker: { source: string; verb: string; at: Date; isOperator: boolean },
  question: Uint8Array,
  answer: JsonObject,
): AuditRecord {
  const params = paramsIn(question);
  const error = objectIn(answer, "error");
  const isRefused = answer.error !== undefined;
  return {
    at: asker.at.toISOString(),
    verdict: isRefused ? "refused" : "accepted",
    source: asker.source,
    verb: asker.verb,
    ...named("task_id", params.task_id),
    ...named("session_id", params.session_id),
    ...named("event_id", params.event_id),
    ...named("key", params.key),
    ...named("code", error.code),
    ...named("check", objectIn(error, "details").check),
    ...(asker.isOperator ? { by: "operator" } : {}),
  };
}

function paramsIn(question: Uint8Array): JsonObject {
  try {
    const params = JSON.parse(new TextDecoder().decode(question)) as JsonValue;
    return isObject(params) ? params : {};
  } catch {
    // It was refused for that; there is nothing to name.
    return {};
  }
}

/** A field whose value is short enough to be a name. */
function named<K extends keyof AuditRecord>(
  field: K,
  value: unknown,
): { [P in K]?: AuditRecord[P] } | object {
  return isId(value) ? { [field]: value } : {};
}

function objectIn(value: JsonValue | undefined, field: string): JsonObject {
  const found = isObject(value) ? value[field] : undefined;
  return isObject(found) ? found : {};
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
