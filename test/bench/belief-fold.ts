/** Claims in memory: what a fold of them takes, and what windows that are extended again and again leave behind. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type BeliefState,
  createBeliefDecider,
  DEFAULT_BELIEF_SETTINGS,
} from "@harmovela/belief-tracker";
import type { Decider, Envelope, EventEntry } from "@harmovela/envelope";
import { claimEvent, TENANT } from "./load.ts";

type Note = (name: string, value: number, unit?: string) => void;

const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 10, 30, 10);
/** As many extensions as claims, so many times. */
const EXTENSIONS = 3;
/** Envelopes made ahead. */
const CHUNK = 10_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes in use after everything that nothing holds is gone. */
function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

class Folding {
  readonly decider: Decider<BeliefState> = createBeliefDecider(DEFAULT_BELIEF_SETTINGS);
  readonly state: BeliefState = this.decider.initial();
  #seq = 0;

  apply(envelope: Envelope, cause: EventEntry["cause"], at: number): void {
    this.#seq += 1;
    const frame = { seq: this.#seq, tenant: TENANT, at, epoch: 1, prev: this.#seq - 1, seen: {} };
    this.decider.evolve(this.state, { ...frame, kind: "event", cause, envelope });
  }

  /** Entries a second; making the envelopes does not count. */
  fold(count: number, envelopeOf: (index: number) => Envelope): number {
    let ms = 0;
    for (let from = 0; from < count; from += CHUNK) {
      const length = Math.min(CHUNK, count - from);
      const chunk = Array.from({ length }, (_, index) => envelopeOf(from + index));
      const started = performance.now();
      for (const envelope of chunk) this.apply(envelope, { in: this.#seq + 1 }, START);
      ms += performance.now() - started;
    }
    return count / (ms / 1_000);
  }

  /** Expiries a second; how many there were. */
  expire(now: number): { perSecond: number; count: number } {
    const started = performance.now();
    let count = 0;
    for (;;) {
      const owed = this.decider.owed(this.state, now, { requests: new Set() });
      if (owed === undefined || !("event" in owed)) break;
      this.apply(owed.event, { owed: owed.cause }, now);
      count += 1;
    }
    return { perSecond: count / ((performance.now() - started) / 1_000), count };
  }
}

const until = (ms: number): string => new Date(START + ms).toISOString();

/** Each field is a string of its own, as one that was read from a message. */
const received = (envelope: Envelope): Envelope => JSON.parse(JSON.stringify(envelope)) as Envelope;

export function beliefFold(note: Note, claims: number): void {
  const name = claims >= 1_000_000 ? `${claims / 1_000_000}m` : `${claims / 1_000}k`;
  const before = heapBytes();
  const folding = new Folding();
  const { windows } = folding.state;
  const claim = (index: number) =>
    received(
      claimEvent(`f_${index}`, "agent:worker", { valid_until: until(HOUR_MS + (index % 1_000)) }),
    );
  note(
    `claims_folded_per_s_${name}`,
    folding.fold(claims, claim),
    "claims/s, with windows, no server",
  );
  if (windows.size !== claims) throw new Error(`${windows.size} windows`);
  const bytes = heapBytes() - before;
  note(`bytes_per_live_claim_${name}`, bytes / claims, "bytes of heap, 160 characters of value");
  note(`heap_mb_${name}_claims`, bytes / 1e6, "MB of heap");
  const extend = (index: number): Envelope =>
    received({
      ...claimEvent("", "agent:worker"),
      type: "freshness.window.changed",
      payload: {
        resource: `memory:f_${index % claims}`,
        new_valid_until: until(2 * HOUR_MS + ((index * 7_919) % 10_000)),
      },
    });
  const perSecond = folding.fold(EXTENSIONS * claims, extend);
  note(`extensions_folded_per_s_${name}`, perSecond, "changes of windows/s");
  if (windows.items.length !== claims) throw new Error(`${windows.items.length} in the heap`);
  const more = heapBytes() - before - bytes;
  note(
    `bytes_per_extended_claim_${name}`,
    more / claims,
    `bytes more after ${EXTENSIONS} extensions each`,
  );
  const expired = folding.expire(START + 3 * HOUR_MS);
  if (expired.count !== claims || windows.size !== 0) throw new Error(`${expired.count} expired`);
  note(`expiries_folded_per_s_${name}`, expired.perSecond, "expiries/s, owed and folded");
}
