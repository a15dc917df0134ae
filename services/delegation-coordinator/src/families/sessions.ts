/** Sessions in the coordinator: it is the responder of every opening (spec 4.3, 5.1). */
import {
  type Decision,
  deriveId,
  type Envelope,
  EVERY_SCOPE,
  type EventEntry,
  findSession,
  formatInstant,
  type Heartbeats,
  type Instant,
  isHarness,
  isService,
  isTerminalSession,
  type Judged,
  type Owed,
  type Session,
  sessionIdOf,
} from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { payloadObject } from "../rules/identity.ts";
import { addTimer, strike } from "./agenda.ts";
import { derive, isForBus } from "./derived.ts";
import { negotiate, ownCapabilities } from "./negotiation.ts";
import type { FamilySettings } from "./settings.ts";
import type { FamilyState, Watch } from "./state.ts";
import { cancelSubscriptionsOf } from "./subscriptions.ts";

/** Intervals without a sign of life after which a session is lost (spec 5.1). */
const MISSED_MAX = 3;

/** Only the initiator and services speak for a known session; an echo is let through. */
export function decideSession(
  state: FamilyState,
  { envelope, tenant, source, grants }: Judged,
): Decision {
  if (envelope.type === "session.heartbeat") return { ignore: "heartbeat" };
  const id = sessionIdOf(envelope);
  const session = id === undefined ? undefined : findSession(state.sessions, tenant, id);
  if (session && source !== session.initiator && !isService(source) && !isHarness(source)) {
    const details = { session_id: session.id };
    return { reject: reject("unauthorized", "this session belongs to another agent", details) };
  }
  const isEnd = envelope.type === "session.closed" || envelope.type === "session.error";
  if (session === undefined && isEnd && !isService(source) && !isHarness(source)) {
    const details = id === undefined ? {} : { session_id: id };
    return { reject: reject("session_error", "nobody has opened this session", details) };
  }
  if (envelope.type === "session.opened" && grants !== undefined) {
    // What it may do now: its answer says it, and only the entry can tell every fold.
    return { accept: envelope, verdict: { scopes: [...(grants.scopes ?? EVERY_SCOPE)] } };
  }
  return { accept: envelope };
}

/** What a request for capabilities owes, before any opening too (spec 4.3). */
export function evolveCapabilities(
  state: FamilyState,
  settings: FamilySettings & { service: string },
  entry: EventEntry,
): void {
  const { envelope, tenant, at } = entry;
  if (envelope.type !== "capabilities.requested" || !isForBus(envelope)) return;
  const event = derive(settings.service, entry, {
    index: "capabilities.declared",
    type: "capabilities.declared",
    target: envelope.source,
    payload: ownCapabilities(settings),
  });
  addTimer(state.agenda, tenant, event, at);
}

/** What follows from the move of a session. */
export function followSession(
  state: FamilyState,
  settings: FamilySettings & { service: string },
  session: Session,
  entry: EventEntry,
): void {
  if (session.state === "opened") answerOpening(state, settings, session, entry);
  else if (session.state === "ready") watch(state, session);
  else if (isTerminalSession(session)) {
    strike(state.agenda, session.tenant, negotiationId(session));
    unwatch(state, session.tenant, timeoutId(session));
    cancelSubscriptionsOf(state, settings, session, entry);
  }
}

function negotiationId({ tenant, openedBy, openedAt }: Session): string {
  return deriveId(tenant, openedBy, "negotiated", openedAt);
}

function answerOpening(
  state: FamilyState,
  settings: FamilySettings & { service: string },
  session: Session,
  entry: EventEntry,
): void {
  const opening = payloadObject(entry.envelope) ?? {};
  const outcome = negotiate(settings, opening, entry.verdict?.scopes);
  const isReady = "ready" in outcome;
  const event = derive(settings.service, entry, {
    index: "negotiated",
    type: isReady ? "session.ready" : "session.error",
    target: session.initiator,
    sessionId: session.id,
    payload: isReady
      ? { session_id: session.id, capabilities: outcome.ready }
      : { session_id: session.id, error: { ...outcome.error } },
  });
  addTimer(state.agenda, entry.tenant, event, entry.at);
}

function timeoutId({ tenant, openedBy, openedAt }: Session): string {
  return deriveId(tenant, openedBy, "session_timeout", openedAt);
}

function watch(state: FamilyState, session: Session): void {
  const { heartbeatIntervalMs, readyAt } = session;
  if (heartbeatIntervalMs === 0 || readyAt === undefined) return;
  state.agenda.count += 1;
  const due = readyAt + MISSED_MAX * heartbeatIntervalMs;
  const added: Watch = { due, order: state.agenda.count, index: -1, session };
  state.watches.set(`${session.tenant} ${timeoutId(session)}`, added);
  state.watched.add(added);
}

/** The session is over, or its time-out could not be written. */
export function unwatch(state: FamilyState, tenant: string, id: string): void {
  const key = `${tenant} ${id}`;
  const known = state.watches.get(key);
  if (known === undefined) return;
  state.watches.delete(key);
  state.watched.remove(known);
}

/** Whether signs of life of a session matter: heartbeats were agreed and its own initiator gives them. */
export function isWatched(
  state: FamilyState,
  tenant: string,
  source: string,
  sessionId: string,
): boolean {
  const session = findSession(state.sessions, tenant, sessionId);
  return (
    session !== undefined &&
    session.state === "ready" &&
    session.heartbeatIntervalMs > 0 &&
    session.initiator === source
  );
}

/**
 * The session that has been silent longest for three intervals, counted from its last sign of life
 * under this leadership. A look at one that was heard meanwhile moves it back.
 */
export function missedOwed(
  state: FamilyState,
  service: string,
  now: Instant,
  heartbeats: Heartbeats,
): Extract<Owed, { event: Envelope }> | undefined {
  for (let at = state.watched.peek(); at && at.due <= now; at = state.watched.peek()) {
    const { session } = at;
    const { tenant, initiator, id, heartbeatIntervalMs, readyAt = 0 } = session;
    const heard = heartbeats.lastHeard(tenant, initiator, id) ?? 0;
    const last = Math.max(heard, heartbeats.sinceOf(tenant), readyAt);
    const due = last + MISSED_MAX * heartbeatIntervalMs;
    if (due <= at.due) {
      const event = timedOut(service, session, last, at.due);
      return { event, tenant, cause: event.id, urgency: "timer", due: at.due };
    }
    state.watched.remove(at);
    at.due = due;
    state.watched.add(at);
  }
  return undefined;
}

function timedOut(service: string, session: Session, last: Instant, due: Instant): Envelope {
  const error = reject("session_timeout", "no heartbeat for three intervals", {
    last_heartbeat_at: formatInstant(last),
    heartbeat_interval_ms: session.heartbeatIntervalMs,
  });
  return {
    spec_version: "0.2",
    id: timeoutId(session),
    type: "session.error",
    source: service,
    target: session.initiator,
    created_at: formatInstant(due),
    causation_id: session.openedBy,
    session_id: session.id,
    payload: { session_id: session.id, error: { ...error } },
  };
}
