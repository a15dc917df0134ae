import type { HarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import { TaskHandle } from "./task-handle.ts";
import type { WorkAgent } from "./work-agent.ts";

/** Follows a task and tells everything that is logged about it. */
export class Follower extends TaskHandle {
  readonly #tell: (entry: Observed) => void;
  readonly #tellLost: (error: HarmovelaError) => void;

  constructor(
    agent: WorkAgent,
    id: string,
    tell: (entry: Observed) => void,
    tellLost: (error: HarmovelaError) => void,
  ) {
    super(agent, id);
    this.#tell = tell;
    this.#tellLost = tellLost;
  }

  protected override onEntry(entry: Observed): void {
    this.#tell(entry);
  }
  protected override onLost(error: HarmovelaError): void {
    this.#tellLost(error);
  }
}
