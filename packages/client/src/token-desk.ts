/** Where a delegator gets the tokens with which it hands tasks over (spec 7). */
import type { Clock } from "@harmovela/bus";
import { Fifo, newId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import type { Reading, ReadOptions } from "./reads.ts";
import { isObject } from "./rejected-error.ts";

type Ask = (verb: string, params: JsonObject, options: ReadOptions) => Promise<Reading>;

const TIMEOUT_MS = 5_000;
const ATTEMPTS_MAX = 4;
/** Before the second attempt, and longer by as much before each further one: a service that is asked too much needs a moment. */
const RETRY_MS = 200;
/** Tokens asked for at a time: a service answers only so many questions of one agent at once. */
export const TOKENS_AT_ONCE = 64;

export class TokenDesk {
  readonly #ask: Ask;
  readonly #clock: Clock;
  #hasKeys: boolean | undefined;
  #asking: Promise<boolean> | undefined;
  #underWay = 0;
  readonly #waiting = new Fifo<() => void>();

  constructor(ask: Ask, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /**
   * Whether the service issues tokens at all, so that an offer can say whether a handoff follows its
   * acceptance. False also when nobody answers; then it is asked again the next time.
   */
  issues(): Promise<boolean> {
    if (this.#hasKeys !== undefined) return Promise.resolve(this.#hasKeys);
    this.#asking ??= this.#look().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /**
   * A token for an accepted delegation of this agent; undefined when the service has no keys. Throws
   * what it refuses with, and what kept it from answering.
   */
  async token(taskId: string, ttlMs?: number): Promise<string | undefined> {
    if (this.#underWay < TOKENS_AT_ONCE) this.#underWay += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#token(taskId, ttlMs);
    } finally {
      // The place goes to whoever waits longest.
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay -= 1;
      else next();
    }
  }

  async #token(taskId: string, ttlMs: number | undefined): Promise<string | undefined> {
    const params = { task_id: taskId, ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }) };
    for (let attempt = 1; ; attempt++) {
      try {
        const { result } = await this.#ask("token", params, { timeoutMs: TIMEOUT_MS });
        const token = isObject(result) ? result.token : undefined;
        if (typeof token !== "string")
          throw new HarmovelaError("internal_error", "the answer holds no token");
        this.#hasKeys = true;
        return token;
      } catch (caught) {
        const error = toHarmovelaError(caught);
        if (isNoSuchRead(error)) {
          this.#hasKeys = false;
          return undefined;
        }
        if (error.retry === "never" || attempt >= ATTEMPTS_MAX) throw error;
        await new Promise<void>((resolve) => this.#clock.after(RETRY_MS * attempt, resolve));
      }
    }
  }

  /** Nobody has delegated a task of a fresh id: a service with keys says so, and no other. */
  async #look(): Promise<boolean> {
    try {
      await this.#ask("token", { task_id: newId("task") }, { timeoutMs: TIMEOUT_MS });
    } catch (caught) {
      const error = toHarmovelaError(caught);
      if (isNoSuchRead(error)) this.#hasKeys = false;
      else if (error.code === "unauthorized") this.#hasKeys = true;
    }
    return this.#hasKeys ?? false;
  }
}

/** The parameters are as they must be, so it can only be the read that there is not. */
function isNoSuchRead({ code }: HarmovelaError): boolean {
  return code === "invalid_query";
}
