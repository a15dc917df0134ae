export { createManagerDecider } from "./decider.ts";
export { describeState } from "./describe.ts";
export { settingsFrom, storeFrom } from "./environment.ts";
export { createManager } from "./service.ts";
export { DEFAULT_MANAGER_SETTINGS, type ManagerSettings } from "./settings.ts";
export type { ManagerState } from "./state.ts";
export { type CheckpointStoreOptions, DEFAULT_CHECKPOINT_STORE } from "./store/checkpoint-store.ts";
export { VERSION } from "./version.ts";
