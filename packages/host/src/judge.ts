/**
 * Judges one validated message against the state and writes what follows (architecture, section 4).
 *
 * J1 One intake message makes at most one entry.
 * J2 A verdict speaks of a stored entry: it is tagged with the newest position it may rest on.
 */
import { HEADER, type StoredMessage } from "@harmovela/bus";
import {
  type Decision,
  deriveId,
  type Envelope,
  type HeartbeatMemory,
  type Instant,
  isBeginning,
  isId,
  isService,
  type LogEntry,
  type RejectionType,
  sessionIdOf,
} from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { type AnswerContext, isAcknowledged, toAcknowledgement, toRejection } from "./answers.ts";
import type { Counters } from "./counters.ts";
import { digestOf, isSameContent } from "./duplicates.ts";
import { type Fold, refusedId } from "./fold.ts";
import { grantsOf } from "./grants.ts";
import type { LateWork } from "./late-work.ts";
import { type EventDraft, type LogWriter, UnappendableError } from "./log-writer.ts";
import type { HostOptions } from "./options.ts";
import type { RefusalRate } from "./refusal-rate.ts";
import type { Dropped, Refused, Valid } from "./validate.ts";
import { sendVerdict, traceparentOf, type VerdictSender } from "./verdicts.ts";

export interface Arrived {
  message: StoredMessage;
  checked: Valid | Refused | Dropped;
  /** When it was stored, as it counts for judging; set when its turn first comes. */
  at?: Instant;
}

export interface JudgeContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  writer: LogWriter<State>;
  rate: RefusalRate;
  counters: Counters;
  verdicts: VerdictSender;
  stream: string;
  /**
   * How often the entry of an intake message could not be folded: it is refused after the first time
   * and, when its refusal cannot be folded either, passed over, or the world would stop.
   */
  poisoned: ReadonlyMap<number, number>;
  lateWork: LateWork;
  /** Room in the log; where it is scarce nothing new is begun. */
  room: { isScarce: boolean; retryAfterMs: number };
  /** Signs of life of sessions, where the decider watches them. */
  heartbeats: HeartbeatMemory | undefined;
  /** An observed log could not be read up to its end: nothing can be judged against it now. */
  isBlind: boolean;
  /** The entry at a log position, when it is at hand. */
  entryAt(seq: number): LogEntry | undefined;
  onDecideError(error: unknown): void;
}

/** "unread": the entry that settled this id must be read first; nothing was done. */
export function judge<State>(
  context: JudgeContext<State>,
  arrived: Arrived,
  storedAt: Instant,
): "done" | "unread" {
  const { message, checked } = arrived;
  const { fold, counters } = context;
  const now = Math.max(storedAt, fold.at);
  if (checked.kind === "dropped" || (context.poisoned.get(message.seq) ?? 0) > 1) {
    counters.add("dropped");
    return "done";
  }
  if (checked.kind === "refused") {
    if (checked.isLimited === true) counters.add("limited");
    refuse(context, message, now, checked, checked.error, checked.as);
    return "done";
  }
  const known = fold.outcomes.get(checked.tenant, checked.envelope.id);
  if (known !== undefined) {
    const entry = context.entryAt(known);
    if (entry === undefined) return "unread";
    answerDuplicate(context, message, now, checked, entry);
    return "done";
  }
  hearSession(context, checked, storedAt);
  if (context.room.isScarce && isBeginning(checked.envelope.type) && !isService(checked.source)) {
    const refused = { ...toRefused(checked), isWithoutRoom: true };
    refuse(context, message, now, refused, noRoom(context));
    return "done";
  }
  try {
    settle(context, message, now, checked, decide(context, message, now, checked));
  } catch (error) {
    if (!(error instanceof UnappendableError)) throw error;
    // Small enough to arrive, too large as it would be stored: numbers may grow when written anew.
    const { envelope, tenant, source } = checked;
    const refused = { kind: "refused", tenant, source, sent: envelope, isOccupying: true } as const;
    const tooLarge = reject("invalid_envelope", "the envelope is too large as it would be stored");
    refuse(context, message, now, { ...refused, error: tooLarge }, tooLarge);
  }
  return "done";
}

/** Later it can be judged; it is not logged, or what is left would be full of refusals. */
function noRoom<State>({ room }: JudgeContext<State>): ErrorPayload {
  const details = { reason: "log_full", retry_after_ms: room.retryAfterMs };
  const facts = { category: "dependency", stage: "append" } as const;
  return reject("internal_error", "the log has little room left", details, facts);
}

/** Any judged envelope of a session is a sign of its life (spec 5.1). */
function hearSession<State>(context: JudgeContext<State>, checked: Valid, at: Instant): void {
  const { heartbeats, options, fold } = context;
  if (heartbeats === undefined) return;
  const id = sessionIdOf(checked.envelope);
  const { tenant, source } = checked;
  if (id !== undefined && options.decider.watches?.(fold.state, tenant, source, id)) {
    heartbeats.hear(tenant, source, id, at);
  }
}

function decide<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  now: Instant,
  { envelope, tenant, source, token, signature }: Valid,
): Decision {
  if (context.poisoned.has(message.seq)) {
    return { reject: reject("internal_error", "the service failed on this envelope") };
  }
  if (context.isBlind) {
    const facts = { category: "dependency", stage: "observe" } as const;
    const why = "a log that this service observes cannot be read";
    return { reject: reject("internal_error", why, undefined, facts) };
  }
  const cause = `in:${message.seq}`;
  const { grants } = context.options;
  try {
    return context.options.decider.decide(
      context.fold.state,
      {
        envelope,
        tenant,
        source,
        intake: message.seq,
        ...(token === undefined ? {} : { token }),
        ...(signature === undefined ? {} : { signature }),
        // Services prove themselves by names that no agent gets.
        ...(grants === undefined || isService(source)
          ? {}
          : { grants: grantsOf(grants, tenant, source) }),
      },
      { now, deriveId: (index) => deriveId(tenant, cause, index, now) },
    );
  } catch (error) {
    context.onDecideError(error);
    return { reject: reject("internal_error", "the service failed on this envelope") };
  }
}

function settle<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  now: Instant,
  checked: Valid,
  decision: Decision,
): void {
  const { writer, counters } = context;
  const { envelope, tenant } = checked;
  const cause = { in: message.seq };
  const traceparent = traceparentOf(message);
  if ("accept" in decision) {
    const isAsSent = decision.accept === envelope;
    writer.event({
      tenant,
      envelope: decision.accept,
      cause,
      at: now,
      traceparent,
      ...(isAsSent ? { bytes: message.data } : { digest: digestOf(envelope) }),
      ...(decision.verdict === undefined ? {} : { verdict: decision.verdict }),
    });
    counters.add("accepted");
    acknowledge(context, message, now, checked, writer.last, decision.verdict ?? {});
  } else if ("begin" in decision) {
    const digest = digestOf(envelope);
    const verdict = { pending: true, ...decision.verdict };
    writer.control({
      kind: "begun",
      plan: decision.begin,
      tenant,
      cause,
      at: now,
      digest,
      verdict,
    });
    counters.add("begun");
    acknowledge(context, message, now, checked, writer.last, verdict);
  } else if ("reject" in decision) {
    const refused: Refused = {
      kind: "refused",
      error: decision.reject,
      tenant,
      source: checked.source,
      sent: envelope,
      isOccupying: true,
    };
    refuse(context, message, now, refused, decision.reject, decision.as);
    if (decision.late !== undefined) {
      context.lateWork.refused({ tenant, source: checked.source, work: decision.late });
    }
  } else if ("duplicate" in decision) {
    counters.add("duplicates");
    const { seq, outcome } = decision.duplicate;
    acknowledge(context, message, now, checked, seq, { duplicate: true, ...outcome });
  } else {
    counters.add("ignored");
  }
}

function answerContext<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  at: Instant,
  { tenant, source }: { tenant: string; source: string },
): AnswerContext {
  return { service: context.options.service, tenant, source, intake: message.seq, at };
}

function acknowledge<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  now: Instant,
  checked: Valid,
  settledBy: number,
  more: JsonObject,
): void {
  if (!isAcknowledged(checked.envelope.type)) return;
  const answer = answerContext(context, message, now, checked);
  const cursor = `${context.stream}:${settledBy}`;
  sendVerdict(context.verdicts, message, checked, context.writer.last, () =>
    toAcknowledgement(answer, checked.envelope, cursor, more),
  );
}

/** Logs a refusal, within the rate of its source, and answers it. A final one takes the id. */
function refuse<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  now: Instant,
  refused: Refused,
  error: ErrorPayload,
  type?: RejectionType,
): void {
  const { tenant, sent } = refused;
  context.counters.add("rejected");
  const isLogged = takesEntry(context, refused, now);
  // Of a flood beyond every rate perhaps nobody wants to hear.
  if (!isLogged && message.header(HEADER.replyTo) === "") return;
  const answer = answerContext(context, message, now, refused);
  // Made now: whoever waits for it until it is stored must not hold the refused envelope, which may be large.
  const rejection = toRejection(answer, sent, error, type);
  if (isLogged) {
    const isFinal = refused.isOccupying && !error.retryable && sent !== undefined;
    context.writer.event({
      tenant,
      envelope: rejection,
      cause: { in: message.seq },
      at: now,
      traceparent: traceparentOf(message),
      ...(isFinal ? { digest: digestOf(sent) } : {}),
      ...aboutIn(sent),
    });
  }
  sendVerdict(context.verdicts, message, refused, context.writer.last, () => rejection);
}

/** Otherwise it is one of many that an entry a second counts. */
function takesEntry<State>(
  { rate }: JudgeContext<State>,
  { tenant, source, isWithoutRoom = false }: Refused,
  now: Instant,
): boolean {
  if (!isWithoutRoom) return rate.takes(tenant, source, now);
  rate.counts(tenant, source);
  return false;
}

/** What the refused envelope says of itself and its refusal does not repeat. */
function aboutIn(sent: Partial<Envelope> | undefined): Pick<EventDraft, "about"> {
  const { type, target, actor_id: actor } = sent ?? {};
  const about = {
    ...(isId(type) ? { type } : {}),
    ...(isId(target) ? { target } : {}),
    ...(isId(actor) ? { actor } : {}),
  };
  return Object.keys(about).length === 0 ? {} : { about };
}

function answerDuplicate<State>(
  context: JudgeContext<State>,
  message: StoredMessage,
  now: Instant,
  checked: Valid,
  entry: LogEntry,
): void {
  const { envelope } = checked;
  const cursor = `${context.stream}:${entry.seq}`;
  if (!isSameContent(envelope, entry)) {
    const error = reject("protocol_error", "this id belongs to another envelope", {
      duplicate_of: cursor,
    });
    refuse(context, message, now, { ...toRefused(checked), isOccupying: false }, error);
    return;
  }
  context.counters.add("duplicates");
  if (entry.kind === "event" && refusedId(entry.envelope) === envelope.id) {
    const recorded: Envelope = entry.envelope;
    sendVerdict(context.verdicts, message, checked, context.writer.last, () => recorded);
    return;
  }
  acknowledge(context, message, now, checked, entry.seq, { duplicate: true, ...entry.verdict });
}

function toRefused(checked: Valid): Refused {
  const { tenant, source, envelope } = checked;
  return {
    kind: "refused",
    error: reject("internal_error", ""),
    tenant,
    source,
    sent: envelope,
    isOccupying: true,
  };
}
