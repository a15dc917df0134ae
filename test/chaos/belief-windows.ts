/** Claims with windows that agents shorten and extend, and which expiries must follow from them (spec 6.2). */
import { setTimeout as pass } from "node:timers/promises";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Sender } from "./sender.ts";
import type { StoredEvent } from "./stored-log.ts";

let made = 0;

/** An event of the domain `beliefs`, created now. */
export function belief(
  source: string,
  type: string,
  payload: JsonObject,
  more: Partial<Envelope> = {},
): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_${process.pid}_b${made}`,
    type,
    source,
    created_at: new Date().toISOString(),
    payload,
    ...more,
  };
}

/** What agents have said, by the id of the event: when the broker stored it. */
export type Said = Map<string, number>;

export interface Life {
  fact: string;
  /** From now, ms. */
  endsIn: number;
  /** Decisions about the window: after how long, and which end from then. */
  changes: readonly { after: number; endsIn: number }[];
}

/** A claim, and its source that thinks again about how long it holds; resolves when all is stored. */
export async function live(sender: Sender, said: Said, { fact, endsIn, changes }: Life) {
  const source = `agent:${fact}`;
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
  const claim = { fact_id: fact, value: 1 };
  const first = belief(source, "memory.fact.added", claim, { valid_until: inMs(endsIn) });
  said.set(first.id, await sender.post(first));
  for (const change of changes) {
    await pass(change.after);
    const payload = { resource: `memory:${fact}`, new_valid_until: inMs(change.endsIn) };
    const next = belief(source, "freshness.window.changed", payload);
    said.set(next.id, await sender.post(next));
  }
}

interface Held {
  end: number;
  since: number;
}

/**
 * Which ends of each resource must be told: those that came before the broker had stored the next
 * decision. Told from what agents sent, not from when anybody judged it.
 */
export function expectedEnds(events: readonly StoredEvent[], said: Said): Map<string, number[]> {
  const held = new Map<string, Held[]>();
  for (const { envelope } of events) {
    const since = said.get(envelope.id);
    const payload = envelope.payload as Record<string, string>;
    const until = envelope.valid_until ?? payload.new_valid_until;
    if (since === undefined || until === undefined) continue;
    const resource = payload.resource ?? `memory:${payload.fact_id}`;
    held.set(resource, [...(held.get(resource) ?? []), { end: Date.parse(until), since }]);
  }
  return new Map(
    [...held].map(([resource, windows]) => {
      const over = windows.filter(({ end, since }, place) => {
        const next = windows[place + 1];
        return next === undefined || Math.max(end, since) <= next.since;
      });
      return [resource, over.map(({ end }) => end).filter((end, at, all) => all[at - 1] !== end)];
    }),
  );
}

/** The expiries that are logged. */
export function expiriesIn(events: readonly StoredEvent[]): StoredEvent[] {
  return events.filter(({ envelope: { type } }) => type === "freshness.expired");
}

export function resourceOf({ envelope }: StoredEvent): string {
  return String((envelope.payload as JsonObject).resource);
}

export function endOf({ envelope }: StoredEvent): number {
  return Date.parse(envelope.valid_until ?? "");
}
