import type { Envelope } from "../envelope.ts";
import { isRecord } from "../field.ts";
import { FORGOTTEN_MAX } from "../forgetting.ts";
import type { DomainEntry, EventEntry, Instant } from "../judging.ts";
import { SPAN_MS_MAX } from "../limits.ts";
import { findSession, isTerminalSession, type Session, type SessionBook } from "./book.ts";
import { isHarness, sessionIdOf } from "./identity.ts";

/**
 * Folds one entry of the log of `tasks` into the book (spec 5.1); total on every entry. Only what a
 * service derived makes a session ready; an echo of a harness changes nothing. The session that the
 * entry moved is returned.
 */
export function evolveSession(book: SessionBook, entry: DomainEntry): Session | undefined {
  forget(book, entry.at);
  if (entry.kind !== "event" || !entry.envelope.type.startsWith("session.")) return undefined;
  const { envelope, tenant } = entry;
  const id = sessionIdOf(envelope);
  if (id === undefined) return undefined;
  const known = findSession(book, tenant, id);
  const isDerived = "owed" in entry.cause;
  if (!isDerived && isHarness(envelope.source)) return undefined;
  switch (envelope.type) {
    case "session.opened":
      return known === undefined ? add(book, entry, id) : undefined;
    case "session.ready":
      return isDerived && known?.state === "opened"
        ? makeReady(known, envelope, entry.at)
        : undefined;
    case "session.closed":
      return end(book, known ?? add(book, entry, id), "closed", entry.at);
    case "session.error":
      return end(book, known ?? add(book, entry, id), "error", entry.at);
    default:
      return undefined;
  }
}

function add(book: SessionBook, entry: EventEntry, id: string): Session {
  const { tenant, envelope, at } = entry;
  const session: Session = {
    id,
    tenant,
    initiator: envelope.source,
    openedBy: envelope.id,
    openedAt: at,
    state: "opened",
    profiles: [],
    heartbeatIntervalMs: 0,
    readyAt: undefined,
    endedAt: undefined,
  };
  let sessions = book.tenants.get(tenant);
  if (sessions === undefined) {
    sessions = new Map();
    book.tenants.set(tenant, sessions);
  }
  sessions.set(id, session);
  return session;
}

function makeReady(session: Session, { payload }: Envelope, at: Instant): Session {
  const capabilities =
    isRecord(payload) && isRecord(payload.capabilities) ? payload.capabilities : {};
  const { profiles, heartbeat_interval_ms: interval } = capabilities;
  session.state = "ready";
  session.readyAt = at;
  session.profiles = Array.isArray(profiles)
    ? profiles.filter((profile) => typeof profile === "string")
    : [];
  if (typeof interval === "number" && interval > 0) {
    session.heartbeatIntervalMs = Math.min(interval, SPAN_MS_MAX);
  }
  return session;
}

function end(
  book: SessionBook,
  session: Session,
  state: "closed" | "error",
  at: Instant,
): Session | undefined {
  if (isTerminalSession(session)) return undefined;
  session.state = state;
  session.endedAt = at;
  book.ended.push(session);
  return session;
}

/** B1. */
function forget({ ended, tenants, retentionMs }: SessionBook, now: Instant): void {
  for (let left = FORGOTTEN_MAX; left > 0; left -= 1) {
    const oldest = ended.peek();
    if (oldest === undefined || (oldest.endedAt ?? now) + retentionMs >= now) return;
    ended.shift();
    const sessions = tenants.get(oldest.tenant);
    sessions?.delete(oldest.id);
    if (sessions?.size === 0) tenants.delete(oldest.tenant);
  }
}
