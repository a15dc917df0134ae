import { type Decider, Fifo, Heap, Ring } from "@harmovela/envelope";
import { decide } from "./decide.ts";
import { evolve } from "./evolve.ts";
import { owed } from "./owed.ts";
import type { ManagerSettings } from "./settings.ts";
import { createState, type ManagerState } from "./state.ts";
import { observeTasks } from "./tasks/fold.ts";
import { wakeInstances } from "./tasks/instances.ts";

/** Of the state's form; raised with every change to what `ManagerState` holds. */
const SNAPSHOT_VERSION = 1;

/**
 * The decider of the domain `interruptions`: how tasks are stopped and go on, what was saved of them, and
 * how they are undone (spec 5.7, 5.8). It observes `tasks`, and asks the coordinator for what becomes of
 * a task.
 */
export function createManagerDecider(settings: ManagerSettings): Decider<ManagerState> {
  return {
    initial: () => createState(settings),
    decide: (state, input, ctx) => decide(state, settings, input, ctx),
    evolve: (state, entry) => evolve(state, settings, entry),
    observe: (state, domain, entry) => {
      if (domain === "tasks") observeTasks(state, settings, entry);
    },
    owed: (state, now, underWay) => owed(state, settings, now, underWay),
    snapshots: {
      version: SNAPSHOT_VERSION,
      classes: { Heap, Ring, Fifo },
      adopt: (state) => {
        state.sessions.retentionMs = settings.retentionMs;
        wakeInstances(state);
      },
    },
  };
}
