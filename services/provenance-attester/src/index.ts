export { createAttesterDecider } from "./decider.ts";
export { describeState } from "./describe.ts";
export { createAttester } from "./service.ts";
export { type AttesterSettings, DEFAULT_ATTESTER_SETTINGS } from "./settings.ts";
export type { AttesterState } from "./state.ts";
export { VERSION } from "./version.ts";
