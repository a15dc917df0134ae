/**
 * Sessions as the log and the intake tell of them: none is lost before three intervals without a sign
 * of life have passed under one leadership, and at rest none that fell silent is left (spec 5.1).
 *
 * L1 Signs of life are memory of the leader: heartbeats on the live subject leave no trace, and may have
 *    been heard or not. So only signs on the intake count here, and a leadership gives a full window.
 * L2 A sign counts when it was stored before anybody could believe that the time was up.
 */
import assert from "node:assert/strict";
import { type EventEntry, type Instant, type LogEntry, sessionIdOf } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

const MISSED_MAX = 3;

interface Session {
  readonly initiator: string;
  intervalMs: number;
  isOver: boolean;
  readonly signs: Sign[];
}

/** When it was stored, and when by a clock that never went back (L2). */
export interface Sign {
  readonly time: Instant;
  readonly reached: Instant;
}

interface Loss {
  readonly key: string;
  readonly session: Session;
  readonly due: Instant;
}

export class SessionBook {
  readonly #sessions = new Map<string, Session>();
  readonly #losses: Loss[] = [];
  #leadingSince: Instant = 0;

  /** The log's next entry. `sign`: the intake message that it settles. */
  push(entry: LogEntry, sign: Sign | undefined): void {
    if (entry.kind === "epoch") this.#leadingSince = entry.at;
    if (entry.kind !== "event") return;
    const { envelope, tenant } = entry;
    const id = sessionIdOf(envelope);
    if (id === undefined || envelope.type === "event.rejected") return;
    const key = keyOf(tenant, id);
    if (sign !== undefined) this.hear(tenant, envelope.source, id, sign);
    if (envelope.type === "session.opened") {
      const session = { initiator: envelope.source, intervalMs: 0, isOver: false, signs: [] };
      this.#sessions.set(key, session);
      return;
    }
    const session = this.#sessions.get(key);
    if (session === undefined) return;
    if (envelope.type === "session.ready") session.intervalMs = intervalIn(entry);
    if (envelope.type !== "session.closed" && envelope.type !== "session.error") return;
    session.isOver = true;
    if (isLoss(entry)) this.#lose(key, session, entry);
  }

  #lose(key: string, session: Session, { envelope, seq }: EventEntry): void {
    const due = Date.parse(envelope.created_at);
    const first = this.#leadingSince + MISSED_MAX * session.intervalMs;
    assert.ok(due >= first, `entry ${seq}: ${key} is lost at ${due}, under a leader from ${first}`);
    this.#losses.push({ key, session, due });
  }

  /** Somebody was heard on the intake. */
  hear(tenant: string, source: string, id: string, sign: Sign): void {
    const session = this.#sessions.get(keyOf(tenant, id));
    if (session?.initiator === source) session.signs.push(sign);
  }

  get lost(): number {
    return this.#losses.length;
  }

  /** Whether heartbeats were agreed with somebody who is not given up yet. */
  get hasWatched(): boolean {
    for (const { intervalMs, isOver } of this.#sessions.values()) {
      if (intervalMs > 0 && !isOver) return true;
    }
    return false;
  }

  /** To be asked when every sign is known. */
  assertHeard(): void {
    for (const { key, session, due } of this.#losses) {
      for (const { time, reached } of session.signs) {
        const isSilent = reached >= due || time + MISSED_MAX * session.intervalMs <= due;
        assert.ok(isSilent, `${key} is lost at ${due}, though it was heard at ${time}`);
      }
    }
  }
}

/** What the service itself says when nobody was heard. */
export function isLoss({ envelope, cause }: EventEntry): boolean {
  const { error } = envelope.payload as { error?: { code?: string } };
  return "owed" in cause && envelope.type === "session.error" && error?.code === "session_timeout";
}

function intervalIn({ envelope }: EventEntry): number {
  const { capabilities } = envelope.payload as { capabilities?: JsonObject };
  const interval = capabilities?.heartbeat_interval_ms;
  return typeof interval === "number" ? interval : 0;
}

const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`;
