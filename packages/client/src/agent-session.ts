/** A session of an agent (spec 5.1): opened, agreed upon, kept alive by heartbeats, closed. */
import { newId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import type { Observation } from "./observation.ts";
import { isObject, RejectedError, toErrorPayload } from "./rejected-error.ts";
import type { WorkAgent } from "./work-agent.ts";

export interface SessionOptions {
  /** Declared when it is opened (spec 3.2). */
  capabilities?: JsonObject;
  /** Wanted between two heartbeats, milliseconds; 0: none. The service may raise it. Default 5,000. */
  heartbeatMs?: number;
}

const HEARTBEAT_MS = 5_000;
const READY_MS = 10_000;

export class AgentSession {
  readonly id = newId("ses");
  readonly #agent: WorkAgent;
  readonly #onLost: (error: HarmovelaError) => void;
  readonly #observation: Observation;
  #answer: { resolve(): void; reject(error: HarmovelaError): void } | undefined;
  #capabilities: JsonObject = {};
  #cancelBeat: (() => void) | undefined;
  #isOver = false;
  /** What ended it, before it was known to be ready as well. */
  #lost: HarmovelaError | undefined;

  /** `onLost` is called once when it ends otherwise than by `close`. */
  constructor(agent: WorkAgent, onLost: (error: HarmovelaError) => void) {
    this.#agent = agent;
    this.#onLost = onLost;
    this.#observation = agent.observe({
      types: "session.*",
      session_id: this.id,
      domains: ["tasks"],
      from: "now",
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What was agreed, as `session.ready` said it. */
  get capabilities(): JsonObject {
    return this.#capabilities;
  }

  /** Resolves when it is ready. Throws what the service refuses it with, or ends it with meanwhile, or `timeout`. */
  async open({ capabilities, heartbeatMs = HEARTBEAT_MS }: SessionOptions): Promise<void> {
    try {
      await this.#observation.ready;
      const ready = new Promise<void>((resolve, reject) => {
        this.#answer = { resolve, reject };
      });
      // It may be refused before anybody waits for it.
      ready.catch(() => undefined);
      this.#pump().catch((error: unknown) => this.#lose(toHarmovelaError(error)));
      await this.#agent.publish({
        type: "session.opened",
        session_id: this.id,
        payload: {
          session_id: this.id,
          version: "0.2",
          capabilities: {
            protocol: "harmovela",
            transports: ["nats"],
            heartbeat_interval_ms: heartbeatMs,
            ...capabilities,
          },
        },
      });
      const cancel = this.#agent.clock.after(READY_MS, () =>
        this.#answer?.reject(new HarmovelaError("timeout", "the session did not become ready")),
      );
      await ready.finally(cancel);
      // Ready, and over before its opening was answered: nobody was told of it yet.
      if (this.#lost) throw this.#lost;
    } catch (error) {
      await this.#end();
      throw error;
    }
    this.#beat();
  }

  /** Says that it is over. Never throws: a session that nobody hears of any more times out. */
  async close(reason?: string): Promise<void> {
    if (this.#isOver) return;
    await this.#end();
    const payload = { session_id: this.id, ...(reason === undefined ? {} : { reason }) };
    try {
      await this.#agent.publish({ type: "session.closed", session_id: this.id, payload });
    } catch {
      // It was over already, or the service will miss its heartbeats.
    }
  }

  async #pump(): Promise<void> {
    for await (const entry of this.#observation) this.#onEntry(entry);
  }

  #onEntry({ envelope }: Observed): void {
    const payload = isObject(envelope.payload) ? envelope.payload : {};
    if (envelope.type === "session.ready") {
      this.#capabilities = (
        isObject(payload.capabilities) ? payload.capabilities : {}
      ) as JsonObject;
      this.#answer?.resolve();
    } else if (envelope.type === "session.error") {
      this.#lose(new RejectedError(toErrorPayload(payload.error), envelope));
    } else if (envelope.type === "session.closed") {
      this.#lose(new HarmovelaError("session_closed", "the session was closed"));
    }
  }

  #lose(error: HarmovelaError): void {
    if (this.#isOver) return;
    this.#lost = error;
    this.#answer?.reject(error);
    const isReady = this.#cancelBeat !== undefined;
    this.#end().catch(() => undefined);
    if (isReady) this.#onLost(error);
  }

  #beat(): void {
    if (this.#isOver) return;
    const ms = this.#capabilities.heartbeat_interval_ms;
    this.#cancelBeat = () => undefined;
    if (typeof ms !== "number" || ms <= 0) return;
    this.#agent.sayLive({
      type: "session.heartbeat",
      session_id: this.id,
      payload: { session_id: this.id },
    });
    this.#cancelBeat = this.#agent.clock.after(ms, () => this.#beat());
  }

  async #end(): Promise<void> {
    this.#isOver = true;
    this.#cancelBeat?.();
    await this.#observation.close();
  }
}
