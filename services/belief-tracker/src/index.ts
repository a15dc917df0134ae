export { createBeliefDecider } from "./decider.ts";
export { describeState } from "./describe.ts";
export { createTracker } from "./service.ts";
export { type BeliefSettings, DEFAULT_BELIEF_SETTINGS } from "./settings.ts";
export type { BeliefState } from "./state.ts";
export { VERSION } from "./version.ts";
