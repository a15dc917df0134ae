/** The reads of the agents: what is answered must rest on what is stored. */
import { type Bus, rpcSubject } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Sent } from "./crowd.ts";
import type { SeenOffer } from "./dealings.ts";
import type { Oracle } from "./oracle.ts";
import { assertAnswer, assertIssued } from "./verify.ts";

const READ_MS = 8_000;

export interface QuestionHooks {
  /** The oracle reads what is stored by now. */
  readLog(): void;
  onBroken(error: unknown): void;
}

interface Question {
  tenant: string;
  source: string;
  verb: string;
  params: JsonObject;
}

export class Questions {
  readonly #bus: Bus;
  readonly #oracle: Oracle;
  readonly #hooks: QuestionHooks;

  constructor(bus: Bus, oracle: Oracle, hooks: QuestionHooks) {
    this.#bus = bus;
    this.#oracle = oracle;
    this.#hooks = hooks;
  }

  /** Whoever was told that a task is accepted finds it, and nothing that is not stored. */
  askTask({ draft: { tenant, envelope } }: Sent, verdict: Envelope): void {
    const { cursor } = verdict.payload as { cursor?: string };
    const { task_id: id, source, type } = envelope;
    if (cursor === undefined || id === undefined || source === undefined) return;
    if (type !== "task.submitted") return;
    const params = { task_id: id, cursor };
    this.#ask({ tenant, source, verb: "task", params }, (text) =>
      assertAnswer(this.#oracle, cursor, JSON.parse(text)),
    );
  }

  /** The read that writes: nobody gets a token before its entry is stored (spec 7). */
  askToken(offer: SeenOffer, ttlMs: number, got: (token: string) => void): void {
    const { tenant, task, by: source } = offer;
    const params = { task_id: task, ttl_ms: ttlMs };
    this.#ask({ tenant, source, verb: "token", params }, (text) => {
      const token = assertIssued(this.#oracle, tenant, text);
      if (token !== undefined) got(token);
    });
  }

  #ask({ tenant, source, verb, params }: Question, onAnswer: (text: string) => void): void {
    const subject = rpcSubject({ tenant, source, domain: "tasks", verb });
    const data = new TextEncoder().encode(JSON.stringify(params));
    this.#bus.request(subject, {}, data, READ_MS).then(
      (answer) => {
        try {
          this.#hooks.readLog();
          onAnswer(new TextDecoder().decode(answer.data));
        } catch (error) {
          this.#hooks.onBroken(error);
        }
      },
      () => {
        // Nobody was there to answer, or nobody in time.
      },
    );
  }
}
