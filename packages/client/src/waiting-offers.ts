/** Offers to an agent that it has not taken yet. What cannot be taken in time is refused, so that the delegator knows. */
import { findOffer, isPending, type Offer } from "./offer.ts";
import type { WorkAgent } from "./work-agent.ts";

export interface OfferEnvironment {
  agent: WorkAgent;
  /** How long an offer may wait, milliseconds. */
  patienceMs: number;
  /** Whether anything can be said to it now. */
  isOpen: () => boolean;
  /** There is another one. */
  onNews: () => void;
  refuse: (offer: Offer) => Promise<void>;
  report: (error: unknown) => void;
}

export class WaitingOffers {
  readonly #environment: OfferEnvironment;
  readonly #offers = new Map<string, Offer>();
  readonly #patience = new Map<string, () => void>();

  constructor(environment: OfferEnvironment) {
    this.#environment = environment;
  }

  /** By task, oldest first. */
  get waiting(): ReadonlyMap<string, Offer> {
    return this.#offers;
  }

  note(offer: Offer): void {
    const { agent, patienceMs, onNews, report } = this.#environment;
    const { taskId } = offer;
    this.drop(taskId);
    this.#offers.set(taskId, offer);
    const cancel = agent.clock.after(patienceMs, () => this.#giveUp(offer).catch(report));
    this.#patience.set(taskId, cancel);
    onNews();
  }

  drop(taskId: string): void {
    this.#patience.get(taskId)?.();
    this.#patience.delete(taskId);
    this.#offers.delete(taskId);
  }

  clear(): void {
    for (const taskId of [...this.#offers.keys()]) this.drop(taskId);
  }

  /** One that may have been made while nobody listened. */
  async lookUp(taskId: string): Promise<void> {
    if (this.#offers.has(taskId)) return;
    const offer = await findOffer(this.#environment.agent, taskId);
    if (offer && this.#environment.isOpen() && !this.#offers.has(taskId)) this.note(offer);
  }

  /** Of what somebody has taken meanwhile a refusal would take it away again. */
  async #giveUp(offer: Offer): Promise<void> {
    const { agent, isOpen, refuse } = this.#environment;
    const { taskId } = offer;
    const isWaiting = (): boolean => isOpen() && this.#offers.get(taskId) === offer;
    if (!isWaiting() || !(await isPending(agent, taskId)) || !isWaiting()) return;
    this.drop(taskId);
    await refuse(offer);
  }
}
