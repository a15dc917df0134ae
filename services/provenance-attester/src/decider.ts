import { type Decider, type Domain, Fifo, Heap } from "@harmovela/envelope";
import { decide } from "./decide.ts";
import { evolve, observe } from "./evolve.ts";
import { owed } from "./owed.ts";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, createState } from "./state.ts";

/** Of the state's form; raised with every change to what `AttesterState` holds. */
const SNAPSHOT_VERSION = 3;

/**
 * The decider of the domain `provenance`: what follows from what, who vouches for it, and whether that can
 * still be shown (spec section 8). It observes every other log: any event may be evidence.
 */
export function createAttesterDecider(settings: AttesterSettings): Decider<AttesterState> {
  return {
    initial: () => createState(settings),
    decide: (state, input, context) => decide(state, settings, input, context),
    evolve: (state, entry) => evolve(state, settings, entry),
    observe: (state, domain, entry) => observe(state, settings, domain, entry),
    owed: (state, now) => owed(state, settings, now),
    firstKnown: (state) => {
      const first: Partial<Record<Domain, number>> = {};
      for (const [domain, log] of state.logs) first[domain] = log.first;
      return first;
    },
    snapshots: {
      version: SNAPSHOT_VERSION,
      classes: { Heap, Fifo },
      adopt: (state) => {
        state.sessions.retentionMs = settings.retentionMs;
      },
    },
  };
}
