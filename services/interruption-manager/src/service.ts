/** The interruption manager: the decider of `interruptions`, its reads and its settings. */
import type { ServiceDefinition } from "@harmovela/host";
import { createManagerDecider } from "./decider.ts";
import { MANAGER_READS } from "./reads.ts";
import { DEFAULT_MANAGER_SETTINGS, type ManagerSettings } from "./settings.ts";
import type { ManagerState } from "./state.ts";
import { openCheckpointActs } from "./store/checkpoint-acts.ts";
import {
  type CheckpointStoreOptions,
  DEFAULT_CHECKPOINT_STORE,
  openCheckpointStore,
} from "./store/checkpoint-store.ts";

/** Everything that a process or the CLI needs to run it (`openService`). */
export function createManager(
  settings: Partial<ManagerSettings> = {},
  store: Partial<CheckpointStoreOptions> = {},
): ServiceDefinition<ManagerState> {
  const complete: ManagerSettings = { ...DEFAULT_MANAGER_SETTINGS, ...settings };
  const room: CheckpointStoreOptions = { ...DEFAULT_CHECKPOINT_STORE, ...store };
  return {
    domain: "interruptions",
    service: complete.service,
    decider: createManagerDecider(complete),
    settings: { ...complete },
    observes: ["tasks"],
    reads: MANAGER_READS,
    openActs: (context) => openCheckpointActs(context, room),
    companion: (context) => openCheckpointStore(context, room),
  };
}
