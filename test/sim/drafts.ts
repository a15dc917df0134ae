/** What the traffic is made of, and who speaks. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { SeenTask } from "./view.ts";

/** One message for the intake. `wants`: what its sender waits for before it gives up sending it again. */
export interface Draft {
  tenant: string;
  envelope: Partial<Envelope>;
  /** The bytes, where they are not the envelope's JSON. */
  text?: string;
  /** The sender in the subject, where it is not the envelope's. */
  subjectSource?: string;
  /** The whole subject, where it is not canonical. */
  subject?: string;
  /** Where the sender asks the verdict to go, where that is not its inbox. */
  reply?: string;
  wants: "verdict" | "storage";
}

/** In which session somebody speaks about a task, or about nothing yet. */
export type SpeaksIn = (
  tenant: string,
  source: string,
  task?: SeenTask | undefined,
) => string | undefined;

export const AGENTS = ["agent:a", "agent:b", "agent:c", "agent:d", "agent:e"] as const;
export const ERROR = { code: "task_error", message: "it broke", retryable: false };

export interface Fields {
  tenant: string;
  source: string;
  payload?: JsonObject;
  session?: string | undefined;
  more?: Partial<Envelope>;
}

/** Envelopes of the traffic beside tasks, with ids of their own. */
export class Drafts {
  readonly #random: SimRandom;
  #count = 0;

  constructor(random: SimRandom) {
    this.#random = random;
  }

  /** Names what belongs to the next envelope. */
  get count(): number {
    return this.#count;
  }

  make(type: string, { tenant, source, payload = {}, session, more }: Fields): Draft {
    this.#count += 1;
    const envelope: Partial<Envelope> = {
      spec_version: "0.2",
      id: `dealing_${this.#count}`,
      type,
      source,
      created_at: "2026-11-30T10:00:00Z",
      ...(this.#random.chance(0.2) ? { tenant_id: tenant } : {}),
      ...(session === undefined ? {} : { session_id: session }),
      ...more,
      payload,
    };
    const wants = type === "session.heartbeat" ? "storage" : "verdict";
    return { tenant, envelope, wants };
  }
}
