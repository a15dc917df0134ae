/** What becomes of one key: events that name it, and revisions of what was said about it. */
import { type Envelope, isService } from "@harmovela/envelope";
import type { BeliefAgent } from "./belief-agent.ts";
import type { Observed } from "./lane.ts";
import type { From, Observation } from "./observation.ts";
import { isObject, RejectedError } from "./rejected-error.ts";

/**
 * `unknown`: it rests on what was retracted, and is to be evaluated again. `resolved`: its claims no
 * longer contradict each other. `window`: it holds for another time than was said.
 */
export type BeliefChange =
  | "asserted"
  | "revised"
  | "retracted"
  | "contradicted"
  | "resolved"
  | "stale"
  | "window"
  | "unknown";

export interface BeliefNews {
  change: BeliefChange;
  key: string;
  envelope: Envelope;
  cursor: string;
}

export interface WatchOptions {
  /** Default "now". */
  from?: Exclude<From, "last">;
}

/** Events about the key that a revision may name; then the oldest go. */
const IDS_MAX = 10_000;

const CHANGES: Readonly<Record<string, BeliefChange>> = {
  "memory.fact.added": "asserted",
  "memory.fact.updated": "asserted",
  "context.updated": "asserted",
  "memory.fact.invalidated": "retracted",
  "context.invalidated": "retracted",
  "state.invalidated": "retracted",
  "belief.conflict.detected": "contradicted",
  "freshness.expired": "stale",
  "freshness.window.changed": "window",
};

export class BeliefWatch implements AsyncIterableIterator<BeliefNews, undefined> {
  readonly key: string;
  /** Resolves when nothing of what is logged from then on is missed. */
  readonly ready: Promise<void>;
  readonly #agent: BeliefAgent;
  readonly #observation: Observation;
  readonly #ids = new Set<string>();

  /** @internal Use `agent.beliefs.watch`. */
  constructor(agent: BeliefAgent, key: string, { from = "now" }: WatchOptions) {
    this.key = key;
    this.#agent = agent;
    this.#observation = agent.observe({
      types: ["memory.fact.*", "context.*", "state.invalidated", "belief.*", "freshness.*"],
      domains: ["beliefs"],
      from,
    });
    this.ready = this.#prepare();
    // Whoever iterates gets the error there; nobody has to wait for `ready`.
    this.ready.catch(() => undefined);
  }

  async next(): Promise<IteratorResult<BeliefNews, undefined>> {
    try {
      await this.ready;
    } catch (error) {
      await this.close();
      throw error;
    }
    for (;;) {
      const { value, done } = await this.#observation.next();
      if (done) return { done: true, value: undefined };
      const news = this.#newsOf(value);
      if (news === undefined) continue;
      this.#agent.note(news.cursor);
      return { done: false, value: news };
    }
  }

  async return(): Promise<IteratorResult<BeliefNews, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Ends the iteration, also of one that waits. */
  close(): Promise<void> {
    return this.#observation.close();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Revisions name the event that they put right: those of before are asked for once. */
  async #prepare(): Promise<void> {
    await this.#observation.ready;
    if (this.#observation.isClosed) return;
    try {
      const { result } = await this.#agent.read("subject", { key: this.key });
      const { claims, conflict } = isObject(result) ? result : {};
      for (const claim of Array.isArray(claims) ? claims : []) {
        if (isObject(claim) && typeof claim.event_id === "string") this.#know(claim.event_id);
      }
      if (isObject(conflict) && typeof conflict.id === "string") this.#know(conflict.id);
    } catch (error) {
      // Nobody has claimed anything about it yet.
      if (!(error instanceof RejectedError) || error.code !== "invalid_query") throw error;
    }
  }

  #newsOf({ envelope, cursor }: Observed): BeliefNews | undefined {
    const change = this.#changeOf(envelope);
    if (change === undefined) return undefined;
    if (change === "asserted" || change === "revised" || change === "contradicted")
      this.#know(envelope.id);
    return { change, key: this.key, envelope, cursor };
  }

  #changeOf(envelope: Envelope): BeliefChange | undefined {
    const { type, source, causation_id: cause } = envelope;
    if (type === "belief.revised") {
      if (cause === undefined || !(this.#ids.has(cause) || this.key === `belief:${cause}`))
        return undefined;
      return isService(source) ? "resolved" : "revised";
    }
    if (keyIn(envelope) !== this.key) return undefined;
    if (type === "state.invalidated" && isService(source)) return "unknown";
    if (type === "context.updated" && fieldOf(envelope, "change_type") === "removed")
      return "retracted";
    return CHANGES[type];
  }

  #know(id: string): void {
    this.#ids.add(id);
    if (this.#ids.size <= IDS_MAX) return;
    const [oldest] = this.#ids;
    if (oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** The tracker key of spec 6.1, for what names one. */
function keyIn(envelope: Envelope): string | undefined {
  const { type } = envelope;
  const text = (name: string): string | undefined => {
    const value = fieldOf(envelope, name);
    return typeof value === "string" ? value : undefined;
  };
  if (type.startsWith("memory.fact.")) return `memory:${text("fact_id")}`;
  if (type.startsWith("context.")) return `context:${text("context_key")}`;
  return type === "belief.conflict.detected" ? text("subject") : text("resource");
}

function fieldOf({ payload }: Envelope, name: string): unknown {
  return isObject(payload) && Object.hasOwn(payload, name) ? payload[name] : undefined;
}
