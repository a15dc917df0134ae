/** The belief tracker: the decider of `beliefs`, its reads and its settings. */
import type { ServiceDefinition } from "@harmovela/host";
import { createBeliefDecider } from "./decider.ts";
import { BELIEF_READS } from "./reads.ts";
import { type BeliefSettings, DEFAULT_BELIEF_SETTINGS } from "./settings.ts";
import type { BeliefState } from "./state.ts";

/** Everything that a process or the CLI needs to run it (`openService`). */
export function createTracker(
  settings: Partial<BeliefSettings> = {},
): ServiceDefinition<BeliefState> {
  const complete: BeliefSettings = { ...DEFAULT_BELIEF_SETTINGS, ...settings };
  return {
    domain: "beliefs",
    service: complete.service,
    decider: createBeliefDecider(complete),
    settings: { ...complete },
    observes: ["tasks", "provenance"],
    reads: BELIEF_READS,
  };
}
