/**
 * The session book: which sessions there are and what was negotiated (spec 5.1). A fold of the log
 * of `tasks`; every service folds the same book from the same entries.
 *
 * B1 A terminal session stays terminal for as long as it is remembered (`retentionMs`).
 * B2 What a session may use is what the logged `session.ready` says, not what anybody computes again.
 */
import { Fifo } from "../fifo.ts";
import type { Instant } from "../judging.ts";

export type SessionStateName = "created" | "opened" | "ready" | "closed" | "error";

export interface Session {
  readonly id: string;
  readonly tenant: string;
  /** Who opened it; who ended it when nobody had opened it. */
  readonly initiator: string;
  /** Id and time of what opened it. */
  readonly openedBy: string;
  readonly openedAt: Instant;
  state: SessionStateName;
  /** Negotiated, with everything that they stand on; none before it is ready. */
  profiles: readonly string[];
  /** 0: no heartbeats were agreed. */
  heartbeatIntervalMs: number;
  /** When it became ready; heartbeats are expected from then on. */
  readyAt: Instant | undefined;
  endedAt: Instant | undefined;
}

export interface SessionBook {
  readonly tenants: Map<string, Map<string, Session>>;
  /** Terminal sessions by the time of their end. */
  readonly ended: Fifo<Session>;
  /** How long a terminal session is remembered, counted in the entries' own times. */
  retentionMs: number;
}

/** As long as a log keeps its entries (architecture, section 6). */
export const SESSION_RETENTION_MS: number = 30 * 86_400_000;

export function createSessionBook(options: { retentionMs?: number } = {}): SessionBook {
  const { retentionMs = SESSION_RETENTION_MS } = options;
  return { tenants: new Map(), ended: new Fifo(), retentionMs };
}

export function findSession(book: SessionBook, tenant: string, id: string): Session | undefined {
  return book.tenants.get(tenant)?.get(id);
}

/** `created` for one that nobody has opened yet (spec 5.1). */
export function sessionState(book: SessionBook, tenant: string, id: string): SessionStateName {
  return findSession(book, tenant, id)?.state ?? "created";
}

export function isTerminalSession(session: Session): boolean {
  return session.state === "closed" || session.state === "error";
}
