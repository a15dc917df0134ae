/**
 * Envelopes on their way, in order for each task: a later one of a task is not sent before the earlier
 * one has its verdict, so that sending again never reorders them. Everything else goes out at once, in
 * the order of the calls, up to the bound of outstanding envelopes; beyond it the calls wait.
 */
import type { Subscription } from "@harmovela/bus";
import { Fifo } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { type Message, type Outcome, Publication, type PublicationContext } from "./publication.ts";
import type { Stored, Verdict } from "./verdict.ts";

interface Item {
  message: Message;
  task: string | undefined;
  resolve(verdict: Verdict | Stored): void;
  reject(error: HarmovelaError): void;
}

export class Outbox {
  readonly #context: PublicationContext;
  readonly #maxOutstanding: number;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #running = new Map<string, Publication>();
  /** A task stands here while one of its envelopes is under way; behind it those that wait for it. */
  readonly #tasks = new Map<string, Fifo<Item>>();
  /** Their turn has come, but too many are outstanding. */
  readonly #ready = new Fifo<Item>();
  #count = 0;
  #replies = 0;
  #isClosed = false;
  #isGivenUp = false;
  #onIdle: (() => void) | undefined;

  constructor(context: PublicationContext, maxOutstanding: number) {
    this.#context = context;
    this.#maxOutstanding = maxOutstanding;
    this.#inbox = context.bus.newInbox();
    this.#subscription = context.bus.subscribe(`${this.#inbox}.*`, ({ subject, data }) => {
      this.#running.get(subject)?.onReply(data);
    });
  }

  /** Envelopes without an outcome, those that wait included. */
  get size(): number {
    return this.#count;
  }

  /** Resolves with the verdict; throws RejectedError, `no_service`, `effect_outcome_uncertain`, `closed`. */
  publish(message: Message, task: string | undefined): Promise<Verdict | Stored> {
    if (this.#isClosed) return Promise.reject(new HarmovelaError("closed", "the agent is closed"));
    return new Promise((resolve, reject) => {
      const item: Item = { message, task, resolve, reject };
      this.#count += 1;
      const ahead = task === undefined ? undefined : this.#tasks.get(task);
      if (ahead) {
        ahead.push(item);
        return;
      }
      if (task !== undefined) this.#tasks.set(task, new Fifo());
      this.#ready.push(item);
      this.#fill();
    });
  }

  onReconnected(): void {
    for (const publication of this.#running.values()) publication.onReconnected();
  }

  /** Takes nothing more, waits up to `drainMs` for what is outstanding, then gives it up. */
  async close(drainMs: number): Promise<void> {
    this.#isClosed = true;
    if (this.#count > 0) {
      await new Promise<void>((resolve) => {
        const cancel = this.#context.clock.after(drainMs, resolve);
        this.#onIdle = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#isGivenUp = true;
    for (const publication of [...this.#running.values()]) publication.abandon();
    this.#subscription.close();
  }

  #fill(): void {
    while (this.#running.size < this.#maxOutstanding) {
      const item = this.#ready.shift();
      if (!item) return;
      if (this.#isGivenUp)
        this.#conclude(item, new HarmovelaError("closed", "the agent is closed"));
      else this.#start(item);
    }
  }

  #start(item: Item): void {
    this.#replies += 1;
    const reply = `${this.#inbox}.${this.#replies}`;
    const publication = new Publication(this.#context, item.message, reply, (outcome) => {
      this.#running.delete(reply);
      this.#conclude(item, outcome);
      this.#fill();
      if (this.#count === 0) this.#onIdle?.();
    });
    this.#running.set(reply, publication);
  }

  #conclude(item: Item, outcome: Outcome): void {
    this.#count -= 1;
    if (outcome instanceof HarmovelaError) item.reject(outcome);
    else item.resolve(outcome);
    const { task } = item;
    if (task !== undefined) {
      const next = this.#tasks.get(task)?.shift();
      if (next) this.#ready.push(next);
      else this.#tasks.delete(task);
    }
  }
}
