/** What agents hold true (spec 6): said, put right, taken back, watched, and asked about before acting. */
import { newEventId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { BeliefAgent } from "./belief-agent.ts";
import {
  type Belief,
  type BeliefOptions,
  type RetractOptions,
  type ReviseOptions,
  toAssertion,
  toRetraction,
  toRevision,
} from "./belief-draft.ts";
import { BeliefWatch, type WatchOptions } from "./belief-watch.ts";
import type { Draft } from "./draft.ts";
import { isObject } from "./rejected-error.ts";

/** A claim of one source, or whatever is claimed on a key. */
export type BeliefName = Belief | string | { key: string; source?: string };

/** Why a claim is not to be acted on, as the service names it. */
export interface Doubt {
  /** As in `stale`, `contradicted`, `awaiting_re_evaluation`, `unverified`. */
  reason: string;
  /** For people. */
  text: string;
  [field: string]: unknown;
}

export interface Useable {
  useable: boolean;
  /** Empty when it may be acted on. */
  reasons: readonly Doubt[];
  /** The log position that it is true at. */
  position: string | undefined;
}

export class Beliefs {
  readonly #agent: BeliefAgent;

  /** @internal Use `agent.beliefs`. */
  constructor(agent: BeliefAgent) {
    this.#agent = agent;
  }

  /**
   * Says that something is so: a claim on `memory:<fact>` or `context:<name>`. Saying it again changes
   * one's own claim; of what others claim it changes nothing, and a contradiction is detected
   * (spec 6.1). Throws `RejectedError` when it was refused, `invalid_argument` for another key.
   */
  async assert(key: string, value: JsonValue, options: BeliefOptions = {}): Promise<Belief> {
    const id = await this.#say(toAssertion(key, value, options));
    return { key, id, source: this.#agent.name, value };
  }

  /**
   * Puts right what was said before. Of one's own belief it changes the value; of another's it says that
   * one knows better, which decides a conflict about it. An event id stands for what it says.
   */
  async revise(
    of: Belief | string,
    corrected: JsonValue,
    options: ReviseOptions = {},
  ): Promise<Belief> {
    const known = typeof of === "string" ? await this.#find(of) : of;
    const values = { previous: known.value, corrected };
    const id = await this.#say(toRevision(known, values, options));
    const { name: source } = this.#agent;
    const key = known.source === source ? known.key : `belief:${known.id}`;
    return { key, id, source, value: corrected };
  }

  /**
   * Takes one's own belief back, or all that is one's own on a key. Whatever rests on it is marked for
   * re-evaluation before the retraction is logged (spec 6.1).
   */
  async retract(what: Belief | string, options: RetractOptions = {}): Promise<void> {
    const { key, id } = typeof what === "string" ? { key: what, id: undefined } : what;
    await this.#say(toRetraction(key, id, options));
  }

  /** May I act on this? No, with the reasons: stale, contradicted, awaiting re-evaluation, unverified. */
  async useable(what: BeliefName): Promise<Useable> {
    const { position, result } = await this.#agent.read("useable", paramsOf(what));
    const { useable, reasons } = isObject(result) ? result : {};
    return {
      // Whatever is no plain yes is a no.
      useable: useable === true,
      reasons: Array.isArray(reasons) ? (reasons as unknown as Doubt[]) : [],
      position,
    };
  }

  /**
   * What becomes of a key: asserted, revised, retracted, contradicted, resolved, stale, in doubt. Nothing
   * is missed after `ready`, and whoever asks after news gets an answer that holds them. Breaking out of
   * the loop closes it; so does the agent.
   */
  watch(key: string, options: WatchOptions = {}): BeliefWatch {
    return new BeliefWatch(this.#agent, key, options);
  }

  async #say(draft: Draft): Promise<string> {
    const id = draft.id ?? newEventId();
    await this.#agent.publish({ ...draft, id });
    return id;
  }

  async #find(id: string): Promise<Belief> {
    const { result } = await this.#agent.read("get", { event_id: id });
    const { key, source, value } = isObject(result) ? result : {};
    if (typeof key === "string" && typeof source === "string") {
      return { key, id, source, value: (value ?? null) as JsonValue };
    }
    throw new HarmovelaError("internal_error", "the answer names no claim");
  }
}

function paramsOf(what: BeliefName): JsonObject {
  if (typeof what === "string") return { key: what };
  if ("id" in what) return { event_id: what.id };
  return what.source === undefined ? { key: what.key } : { key: what.key, source: what.source };
}
