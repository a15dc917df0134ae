import { type Decider, evolveSession, Fifo, Heap, Ring } from "@harmovela/envelope";
import { decide } from "./decide.ts";
import { evolve } from "./evolve.ts";
import { owed } from "./owed.ts";
import type { BeliefSettings } from "./settings.ts";
import { type BeliefState, createState } from "./state.ts";
import { observeTruncation } from "./truncation.ts";

/** Of the state's form; raised with every change to what `BeliefState` holds. */
const SNAPSHOT_VERSION = 3;

/**
 * The decider of the domain `beliefs`: what is claimed, by whom and until when, what contradicts it, and
 * what rests on what (spec 6). It observes `tasks` for sessions and
 * `provenance` for evidence that was lost. Types without rules are accepted as facts.
 */
export function createBeliefDecider(settings: BeliefSettings): Decider<BeliefState> {
  return {
    initial: () => createState(settings),
    decide: (state, input, context) => decide(state, settings, input, context),
    evolve: (state, entry) => evolve(state, settings, entry),
    observe: (state, domain, entry) => {
      if (domain === "tasks") evolveSession(state.sessions, entry);
      else if (domain === "provenance") observeTruncation(state, entry);
    },
    owed: (state, now) => owed(state, settings, now),
    snapshots: {
      version: SNAPSHOT_VERSION,
      classes: { Heap, Ring, Fifo },
      adopt: (state) => {
        state.sessions.retentionMs = settings.retentionMs;
      },
    },
  };
}
