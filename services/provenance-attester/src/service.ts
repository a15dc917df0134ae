/** The provenance attester: the decider of `provenance`, its reads and its settings. */
import type { ServiceDefinition } from "@harmovela/host";
import { createAttesterDecider } from "./decider.ts";
import { createReads } from "./reads.ts";
import { type AttesterSettings, DEFAULT_ATTESTER_SETTINGS } from "./settings.ts";
import type { AttesterState } from "./state.ts";

/** Everything that a process or the CLI needs to run it (`openService`). */
export function createAttester(
  settings: Partial<AttesterSettings> = {},
): ServiceDefinition<AttesterState> {
  const complete: AttesterSettings = { ...DEFAULT_ATTESTER_SETTINGS, ...settings };
  return {
    domain: "provenance",
    service: complete.service,
    decider: createAttesterDecider(complete),
    settings: { ...complete },
    observes: ["tasks", "beliefs", "interruptions"],
    reads: createReads(complete),
  };
}
