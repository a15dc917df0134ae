/** What a worker says to an offer (spec 5.6). */
import type { JsonObject } from "@harmovela/failure";
import { toHarmovelaError } from "@harmovela/failure";
import { type Parties, toDelegationEvent } from "./delegation-request.ts";
import type { Offer } from "./offer.ts";
import { RejectedError } from "./rejected-error.ts";
import type { WorkAgent } from "./work-agent.ts";

const AGAIN_MS = 1_000;

export class Answers {
  readonly #agent: WorkAgent;
  readonly #isClosing: () => boolean;

  constructor(agent: WorkAgent, isClosing: () => boolean) {
    this.#agent = agent;
    this.#isClosing = isClosing;
  }

  /** Whether the job is this process's: of several acceptances in one name one is accepted. */
  async accept(offer: Offer): Promise<boolean> {
    const draft = toDelegationEvent("delegation.accepted", this.#partiesOf(offer), {
      target: offer.delegatedBy,
    });
    for (;;) {
      try {
        await this.#agent.publish(draft);
        return true;
      } catch (caught) {
        if (caught instanceof RejectedError) return false;
        const { code, retry } = toHarmovelaError(caught);
        if (code !== "effect_outcome_uncertain" && retry === "never") throw caught;
      }
      // The same envelope again: whatever became of it the first time is what is answered.
      if (this.#isClosing()) return false;
      await new Promise<void>((resolve) => this.#agent.clock.after(AGAIN_MS, resolve));
    }
  }

  /** Throws only what kept it from being said. */
  async reject(offer: Offer, reason: string, retryAfterMs = 0): Promise<void> {
    const payload: JsonObject = { reason };
    if (retryAfterMs > 0) payload.retry_after = new Date(Date.now() + retryAfterMs).toISOString();
    const more = { target: offer.delegatedBy, payload };
    try {
      await this.#agent.publish(
        toDelegationEvent("delegation.rejected", this.#partiesOf(offer), more),
      );
    } catch (error) {
      // Somebody took it, or it is over.
      if (!(error instanceof RejectedError)) throw error;
    }
  }

  #partiesOf({ taskId, parentId, delegatedBy }: Offer): Parties {
    return { taskId, parentId, by: delegatedBy, to: this.#agent.name };
  }
}
