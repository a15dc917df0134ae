/** What delegating and working for others need of an agent. */
import type { Clock } from "@harmovela/bus";
import type { JsonObject } from "@harmovela/failure";
import type { CheckpointStore } from "./checkpoint-store.ts";
import type { Draft } from "./draft.ts";
import type { Interruptions } from "./interruptions.ts";
import type { Observation, ObserveOptions } from "./observation.ts";
import type { Reading, ReadOptions } from "./reads.ts";
import type { TaskAgent } from "./task-handle.ts";
import type { TaskWatch } from "./task-watch.ts";
import type { TokenDesk } from "./token-desk.ts";

/** Its `watch` sees the events of delegations between those of tasks, in the order of the log. */
export interface WorkAgent extends TaskAgent {
  readonly name: string;
  readonly clock: Clock;
  readonly desk: TokenDesk;
  readonly checkpoints: CheckpointStore;
  readonly interruptions: Interruptions;
  /** Sees the events of interruptions. */
  readonly interruptionWatch: TaskWatch;
  read(verb: string, params: JsonObject, options?: ReadOptions): Promise<Reading>;
  observe(options: ObserveOptions): Observation;
  /** What was read up to here, later answers hold. */
  note(cursor: string): void;
  /** Says what is neither judged nor stored. */
  sayLive(draft: Draft): void;
}

/** The same agent as it speaks in a session; the session may be another one later. */
export function inSession(agent: WorkAgent, sessionId: () => string | undefined): WorkAgent {
  return {
    ...agent,
    publish: (draft) => {
      const id = sessionId();
      return agent.publish(id === undefined ? draft : { session_id: id, ...draft });
    },
  };
}
