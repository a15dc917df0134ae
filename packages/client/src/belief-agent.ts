import type { JsonObject } from "@harmovela/failure";
import type { Draft } from "./draft.ts";
import type { Observation, ObserveOptions } from "./observation.ts";
import type { Reading, ReadOptions } from "./reads.ts";
import type { Verdict } from "./verdict.ts";

/** What beliefs need of their agent. */
export interface BeliefAgent {
  readonly name: string;
  publish(draft: Draft): Promise<Verdict>;
  read(verb: string, params: JsonObject, options?: ReadOptions): Promise<Reading>;
  observe(options: ObserveOptions): Observation;
  /** What was read up to here, later answers hold. */
  note(cursor: string): void;
}
