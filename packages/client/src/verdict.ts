/** What comes back on an envelope (spec 9.2): an acknowledgement, a rejection, or only the broker's word. */
import { type Envelope, parseJson } from "@harmovela/envelope";
import { isObject, RejectedError, toErrorPayload } from "./rejected-error.ts";

/** Judged and accepted. */
export interface Verdict {
  /** Of the envelope. */
  id: string;
  /** Position in the log of what settled it, `<stream>:<sequence>`. */
  cursor: string;
  /** The same envelope had been accepted before. */
  duplicate: boolean;
  /** Accepted, and its own event follows in the log when what it waits for has happened. */
  pending: boolean;
  /** The task's id where the service has chosen it. */
  taskId?: string;
  /** Of a `freshness.window.changed`: whether it is in force now (spec 6.2). */
  applied?: boolean;
  /** What was odd about it, as in `late` or `previous_valid_until_mismatch`; absent when nothing was. */
  flags?: readonly string[];
}

/** Stored in the intake; its family is never acknowledged (spec 9.2). */
export interface Stored {
  id: string;
  stored: true;
}

/** The verdict in a message on the sender's inbox; undefined when it is none on this envelope. */
export function readVerdict(bytes: Uint8Array, id: string): Verdict | RejectedError | undefined {
  const json = parseJson(bytes);
  if (!json.ok) return undefined;
  const envelope = json.value as unknown as Envelope;
  const payload: unknown = envelope.payload;
  if (typeof envelope.type !== "string" || !isObject(payload)) return undefined;
  const about = payload.acknowledged_event_id;
  if (envelope.type.endsWith(".rejected")) {
    // A refusal of what could not be read names nothing; the reply subject says whose it is.
    if (about !== undefined && about !== id) return undefined;
    return new RejectedError(toErrorPayload(payload.error), envelope);
  }
  if (envelope.type !== "event.acknowledged" || about !== id) return undefined;
  if (typeof payload.cursor !== "string") return undefined;
  return {
    id,
    cursor: payload.cursor,
    duplicate: payload.duplicate === true,
    pending: payload.pending === true,
    ...(typeof payload.task_id === "string" ? { taskId: payload.task_id } : {}),
    ...(typeof payload.applied === "boolean" ? { applied: payload.applied } : {}),
    ...(isTextList(payload.flags) ? { flags: payload.flags } : {}),
  };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** Families without acknowledgement, or two peers would answer each other for ever (spec 11, C16). */
export function isAcknowledged(type: string): boolean {
  return !type.startsWith("event.") && type !== "session.heartbeat";
}
