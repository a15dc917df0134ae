/**
 * One of two domains that observe each other. An event of an agent with `payload.ask` makes it ask the
 * other one for something; the other refuses the first `payload.refusals` tries as retryable and takes
 * the next, or refuses for good where it says so. Everything folded, of either log, goes into one
 * digest, so states are equal only where both logs were folded in the same order.
 */
import { createHash } from "node:crypto";
import {
  type Decider,
  type Domain,
  type DomainEntry,
  deriveId,
  type Envelope,
  formatInstant,
  type Instant,
} from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";

const PAUSE_MS = 50;

interface Asked {
  id: string;
  tenant: string;
  cause: string;
  attempt: number;
  refusals: number;
  isFutile: boolean;
  /** From when on it is owed. */
  due: Instant;
}

export interface PeerState {
  order: string;
  folded: number;
  owed: Map<string, Asked>;
  /** By what asked: "accepted" or "refused", and the attempts that it took. */
  outcomes: Map<string, string>;
}

export interface Peer {
  domain: Domain;
  other: Domain;
  service: string;
  /** What it asks the other one for. */
  type: string;
  /** What its own agents send. */
  sent: string;
}

export const TASKS: Peer = {
  domain: "tasks",
  other: "interruptions",
  service: "service:tasks",
  type: "interruption.acknowledged",
  sent: "task.progress",
};
export const INTERRUPTIONS: Peer = {
  domain: "interruptions",
  other: "tasks",
  service: "service:interruptions",
  type: "task.progress",
  sent: "interruption.acknowledged",
};

const payloadOf = ({ payload }: Envelope): JsonObject =>
  payload !== null && typeof payload === "object" && !Array.isArray(payload) ? payload : {};

export function describePeer({ order, folded, owed, outcomes }: PeerState): JsonObject {
  const sorted = [...outcomes].sort(([a], [b]) => (a < b ? -1 : 1));
  return { order, folded, owed: [...owed.keys()].sort(), outcomes: Object.fromEntries(sorted) };
}

function note(state: PeerState, domain: Domain, { seq }: DomainEntry): void {
  const text = `${state.order} ${domain}:${seq}`;
  state.order = createHash("sha256").update(text).digest("hex").slice(0, 16);
  state.folded += 1;
}

function ask(state: PeerState, asked: Omit<Asked, "id">): void {
  const id = deriveId(asked.tenant, asked.cause, `ask:${asked.attempt}`, asked.due);
  state.owed.set(id, { ...asked, id });
}

function own(state: PeerState, { service }: Peer, entry: DomainEntry): void {
  if (entry.kind !== "event" || entry.envelope.source.startsWith("service:")) return;
  const { envelope, tenant, at } = entry;
  if (envelope.source === service || payloadOf(envelope).ask !== true) return;
  const { refusals = 0, futile = false } = payloadOf(envelope);
  const cause = envelope.id;
  const isFutile = futile === true;
  ask(state, { tenant, cause, attempt: 1, refusals: Number(refusals), isFutile, due: at });
}

function observe(state: PeerState, entry: DomainEntry): void {
  if (entry.kind !== "event") return;
  const { envelope, at } = entry;
  const refused = String(payloadOf(envelope).acknowledged_event_id ?? "");
  const asked = state.owed.get(envelope.id) ?? state.owed.get(refused);
  if (asked === undefined) return;
  state.owed.delete(asked.id);
  const { cause, attempt } = asked;
  if (envelope.id === asked.id) {
    state.outcomes.set(cause, `accepted ${attempt}`);
    return;
  }
  const { error } = payloadOf(envelope) as { error?: { retryable?: boolean } };
  if (error?.retryable !== true) state.outcomes.set(cause, `refused ${attempt}`);
  else ask(state, { ...asked, attempt: attempt + 1, due: at + PAUSE_MS * 2 ** attempt });
}

function requestOf({ service, type }: Peer, asked: Asked): Envelope {
  const { id, cause, attempt, refusals, isFutile, due } = asked;
  return {
    spec_version: "0.2",
    id,
    type,
    source: service,
    created_at: formatInstant(due),
    causation_id: cause,
    task_id: `task:${cause}`,
    payload: { attempt, refusals, futile: isFutile },
  };
}

export function createPeerDecider(peer: Peer): Decider<PeerState> {
  return {
    initial: () => ({ order: "", folded: 0, owed: new Map(), outcomes: new Map() }),
    snapshots: { version: 1, classes: {} },
    decide: (_state, { envelope }) => {
      const { attempt, refusals, futile } = payloadOf(envelope);
      if (futile === true && attempt !== undefined)
        return { reject: reject("task_error", "never") };
      if (Number(attempt) <= Number(refusals)) {
        return {
          reject: reject("internal_error", "not now", undefined, { category: "dependency" }),
        };
      }
      return { accept: envelope };
    },
    evolve: (state, entry) => {
      note(state, peer.domain, entry);
      own(state, peer, entry);
    },
    observe: (state, domain, entry) => {
      note(state, domain, entry);
      observe(state, entry);
    },
    owed: (state, now, { requests }) => {
      let wakeAt: Instant | undefined;
      for (const asked of state.owed.values()) {
        const { tenant, id, due } = asked;
        if (requests.has(id)) continue;
        if (due <= now) {
          return { request: requestOf(peer, asked), tenant, cause: id, to: peer.other };
        }
        wakeAt = Math.min(wakeAt ?? due, due);
      }
      return wakeAt === undefined ? undefined : { wakeAt };
    },
  };
}
