import type { Decider } from "@harmovela/envelope";
import { decide } from "./decide.ts";
import { evolve } from "./evolve.ts";
import { owed } from "./owed.ts";
import type { TaskSettings } from "./settings.ts";
import { createState, type TaskState } from "./state.ts";

/**
 * The decider of the domain `tasks` (spec 5.4, 5.5, 9.8): tasks, their tree, how they end. Other
 * families of the domain are accepted as facts.
 */
export function createTaskDecider(settings: TaskSettings): Decider<TaskState> {
  return {
    initial: createState,
    decide: (state, input, ctx) => decide(state, settings, input, ctx),
    evolve: (state, entry) => evolve(state, settings, entry),
    owed: (state, now) => owed(state, settings, now),
  };
}
