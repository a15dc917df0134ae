import { Fifo } from "@harmovela/envelope";
import type { Compensation, Reason } from "./view.ts";

export type Policy = "drain_then_stop" | "save_and_stop" | "force_stop";

/** An interruption as the log tells it (spec 5.7). */
export interface Interruption {
  /** Id of its request. */
  readonly id: string;
  policy: Policy;
  state: "requested" | "acknowledged" | "saved";
  /** Position and subject of its request. */
  readonly seq: number;
  readonly subject: string;
  /** Position of the entry by which it was saved. */
  savedAt: number;
  /** End of the grace; undefined when there is none, or not any more. */
  due: number | undefined;
  /** The request for a tree that it came from, as of a task below the root. */
  readonly treeOf: string | undefined;
  /** The requests for a tree of which its task is the root, also those that gave way to it. */
  readonly trees: readonly string[];
  /** First met in the middle of its life: what came before is unknown. */
  readonly isAdopted: boolean;
  /** Ids of its events. */
  readonly events: string[];
}

export interface Checkpoint {
  readonly id: string;
  /** What a resume may compare, and what a second checkpoint of this id must repeat. */
  readonly content: readonly unknown[];
  readonly digest: unknown;
}

/** The interruptions of one task. */
export interface Stops {
  readonly taskId: string;
  open: Interruption | undefined;
  /** Oldest first. */
  readonly checkpoints: Map<string, Checkpoint>;
  /** Older interruptions, the newest last. */
  readonly earlier: Interruption[];
  /** Entries for which something is asked of the task. */
  readonly reasons: Map<string, { reason: Reason; seq: number; subject: string }>;
  /** The entry since which it is to end. */
  ending: string | undefined;
  /** When the newest of its interruptions was closed. */
  closedAt: number;
  /** Sessions by whose end the service has interrupted it: ids of the events. */
  readonly sessionEnds: Set<string>;
}

export interface KnownCompensation extends Compensation {
  readonly reason: string | undefined;
  readonly at: number;
  isCompleted: boolean;
}

/** The book of one tenant. */
export class TenantBook {
  readonly stops = new Map<string, Stops>();
  readonly compensations = new Map<string, KnownCompensation>();
  /** The newest compensation of an original for a reason. */
  readonly byReason = new Map<string, KnownCompensation>();
  /** An obligation failed: nothing need be complete. */
  isExcused = false;
  readonly #touched = new Fifo<{ stops: Stops; at: number }>();
  readonly #asked = new Fifo<KnownCompensation>();

  get(taskId: string): Stops | undefined {
    return this.stops.get(taskId);
  }

  /** The interruptions of a task, which get an event now. */
  at(taskId: string, at: number): Stops {
    let found = this.stops.get(taskId);
    if (found === undefined) {
      found = {
        taskId,
        open: undefined,
        checkpoints: new Map(),
        earlier: [],
        reasons: new Map(),
        ending: undefined,
        closedAt: 0,
        sessionEnds: new Set(),
      };
      this.stops.set(taskId, found);
      this.#touched.push({ stops: found, at });
    }
    return found;
  }

  add(compensation: KnownCompensation): void {
    this.compensations.set(compensation.taskId, compensation);
    this.byReason.set(reasonKey(compensation.original, compensation.reason), compensation);
    this.#asked.push(compensation);
  }

  /** Takes out what nobody has used since a time; `isNeeded`: the task is live, or may be. */
  forget(before: number, at: number, isNeeded: (taskId: string) => boolean): void {
    for (let oldest = this.#touched.peek(); oldest && oldest.at < before; ) {
      this.#touched.shift();
      const { stops } = oldest;
      if (stops.open !== undefined || isNeeded(stops.taskId)) this.#touched.push({ stops, at });
      else this.stops.delete(stops.taskId);
      oldest = this.#touched.peek();
    }
    for (let oldest = this.#asked.peek(); oldest && oldest.at < before; ) {
      this.#asked.shift();
      if (this.compensations.get(oldest.taskId) === oldest) {
        this.compensations.delete(oldest.taskId);
      }
      const key = reasonKey(oldest.original, oldest.reason);
      if (this.byReason.get(key) === oldest) this.byReason.delete(key);
      oldest = this.#asked.peek();
    }
  }
}

export const reasonKey = (original: string, reason: string | undefined): string =>
  `${original.length}:${original}${reason ?? ""}`;

/** After `saved`, or from a forced stop on, nobody works on the task. */
export function isStopped({ state, policy }: Interruption): boolean {
  return state === "saved" || policy === "force_stop";
}
