import type { JsonObject } from "@harmovela/failure";
import type { Session, SessionBook } from "./book.ts";

/** A canonical, JSON-able form of the book: equal logs give equal descriptions. */
export function describeSessions(book: SessionBook): JsonObject {
  const tenants: JsonObject = {};
  for (const name of [...book.tenants.keys()].sort()) {
    const sessions = book.tenants.get(name) ?? new Map<string, Session>();
    if (sessions.size === 0) continue;
    tenants[name] = [...sessions.keys()].sort().flatMap((id) => {
      const session = sessions.get(id);
      return session === undefined ? [] : [describeSession(session)];
    });
  }
  return tenants;
}

/** One session as it stands. */
export function describeSession(session: Session): JsonObject {
  return {
    session_id: session.id,
    state: session.state,
    initiator: session.initiator,
    opened_by: session.openedBy,
    opened_at_ms: session.openedAt,
    profiles: [...session.profiles],
    heartbeat_interval_ms: session.heartbeatIntervalMs,
    ready_at_ms: session.readyAt ?? null,
    ended_at_ms: session.endedAt ?? null,
  };
}
