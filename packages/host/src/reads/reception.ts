/**
 * Who asks, whether it may, and where the answer goes (architecture, section 3; spec 9.7). Answers go to
 * inboxes only: a reply subject elsewhere could forge a log entry, so it is dropped and counted.
 */
import { type CoreMessage, isUnderInbox, parseRpcSubject, type RpcAddress } from "@harmovela/bus";
import { type Grants, isId, mayRead } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import type { AuditBook } from "../audit/book.ts";
import { askedRecord } from "../audit/record.ts";
import type { Counters } from "../counters.ts";
import { grantsOf } from "../grants.ts";
import type { HostOptions } from "../options.ts";

/** An answer must fit into one message. */
const ANSWER_BYTES_MAX = 900_000;

/** A question that can be answered. */
export interface Asked {
  readonly to: RpcAddress;
  readonly data: Uint8Array;
  readonly reply: string;
  /** What allows the reply. */
  readonly prefix: string;
}

export interface ReceptionContext<State> {
  options: HostOptions<State>;
  counters: Counters;
  /** Where it is recorded who was answered what. */
  audit: AuditBook | undefined;
}

export class Reception<State> {
  readonly #context: ReceptionContext<State>;
  /** Verbs whose answers stand in the log, and so in its record. */
  readonly #logged: readonly string[];
  #isClosed = false;

  constructor(context: ReceptionContext<State>, logged: readonly string[]) {
    this.#context = context;
    this.#logged = logged;
  }

  /** From now on nobody is answered. */
  close(): void {
    this.#isClosed = true;
  }

  /** Undefined, and counted, when it has no form or nothing allows the reply. */
  receive({ subject, reply, data }: CoreMessage): Asked | undefined {
    const { counters } = this.#context;
    const to = parseRpcSubject(subject);
    if (to === undefined || reply === "") {
      counters.add("dropped");
      return undefined;
    }
    const prefix = this.#prefixOf(reply, to);
    if (prefix === undefined) {
      counters.add("replies_dropped");
      return undefined;
    }
    return { to, data, reply, prefix };
  }

  /** False when whoever asks may not: that was the answer. */
  admit(asked: Asked): boolean {
    const { domain } = this.#context.options;
    const grants = this.#grantsOf(asked);
    if (grants === undefined || mayRead(grants, domain)) return true;
    const details = { check: "scope", scope: `read:${domain}` };
    this.fail(
      asked,
      new HarmovelaError("unauthorized", "the connection lacks a scope", { details }),
    );
    return false;
  }

  /** Answers, and has it recorded. */
  answer(asked: Asked, answer: JsonObject): void {
    const { audit, options } = this.#context;
    const { to, data, reply, prefix } = asked;
    const isLogged = this.#logged.includes(to.verb) && answer.error === undefined;
    if (audit !== undefined && !isLogged) {
      const isOperator = options.borderReplyPrefix !== undefined && !this.isTenant(asked);
      const asker = { source: to.source, verb: to.verb, at: new Date(), isOperator };
      // With keys nobody has such a name; without, it says nothing about anybody.
      if (!isId(to.tenant) || !isId(to.source)) audit.lose(1);
      else audit.add(to.tenant, askedRecord(asker, data, answer));
    }
    this.reply(reply, prefix, answer);
  }

  fail(asked: Asked, error: unknown): void {
    this.answer(asked, { error: errorOf(error) });
  }

  /** The question comes out of the account of a tenant. */
  isTenant({ prefix }: Asked): boolean {
    return prefix === this.#context.options.borderReplyPrefix;
  }

  /** Says something to an inbox under `prefix`. */
  reply(reply: string, prefix: string, answer: JsonObject): void {
    const { options, counters } = this.#context;
    if (this.#isClosed) return;
    if (reply === "") {
      counters.add("dropped");
      return;
    }
    if (!isUnderInbox(reply, prefix)) {
      counters.add("replies_dropped");
      return;
    }
    let data = Buffer.from(JSON.stringify(answer));
    if (data.length > ANSWER_BYTES_MAX) {
      const error = new HarmovelaError("invalid_query", "the answer is too large; ask for less");
      data = Buffer.from(JSON.stringify({ error: error.toErrorPayload() }));
    }
    options.answerer.publish(reply, {}, data);
  }

  /** Undefined: whatever it likes. That is an operator, who sits on this side of the border and stands in no registry. */
  #grantsOf(asked: Asked): Grants | undefined {
    const { grants } = this.#context.options;
    const { tenant, source } = asked.to;
    if (grants === undefined) return undefined;
    return this.isTenant(asked) ? grantsOf(grants, tenant, source) : grants.of(tenant, source);
  }

  /** What allows a reply there; undefined when nothing does. */
  #prefixOf(reply: string, to: { tenant: string; source: string }): string | undefined {
    const { replyPrefix, borderReplyPrefix } = this.#context.options;
    const own = replyPrefix(to.tenant, to.source);
    if (isUnderInbox(reply, own)) return own;
    if (borderReplyPrefix === undefined || !isUnderInbox(reply, borderReplyPrefix))
      return undefined;
    return borderReplyPrefix;
  }
}

/** As it is said in an answer (spec 9.5). */
export function errorOf(error: unknown): JsonObject {
  return toHarmovelaError(error).toErrorPayload() as unknown as JsonObject;
}
