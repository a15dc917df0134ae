/** An agent that is nothing but a NATS client with a key, in a few lines; and what the server forbids it. */
import assert from "node:assert/strict";
import { encodeToken, intakeSubject, rpcSubject } from "@harmovela/bus";
import { type Domain, domainOf, type Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  connect,
  headers,
  type Msg,
  type NatsConnection,
  nkeyAuthenticator,
  nkeys,
  PermissionViolationError,
} from "@nats-io/transport-node";
import { eventually, within } from "../chaos/deadline.ts";
import { type Answer, envelope } from "../chaos/sender.ts";

const DEADLINE_MS = 30_000;

export interface Violation {
  operation: string;
  subject: string;
}

/** Who it is, and where its server tells its operator of what it forbids. */
export interface Identity {
  tenant: string;
  name: string;
  serverLog: () => string;
}

export class PlainAgent {
  readonly nats: NatsConnection;
  readonly tenant: string;
  readonly name: string;
  /** As the server has told it, and not asked about yet. */
  readonly violations: Violation[] = [];
  readonly #publicKey: string;
  readonly #serverLog: () => string;
  /** Lines of the server's log that have shown something forbidden. */
  readonly #shown = new Set<string>();
  /** Verdicts that refused what it said. */
  readonly refusals: Answer[] = [];

  private constructor(nats: NatsConnection, publicKey: string, identity: Identity) {
    this.nats = nats;
    this.tenant = identity.tenant;
    this.name = identity.name;
    this.#publicKey = publicKey;
    this.#serverLog = identity.serverLog;
  }

  static async open(url: string, file: Uint8Array, identity: Identity): Promise<PlainAgent> {
    const { tenant, name } = identity;
    const seed = new TextEncoder().encode(new TextDecoder().decode(file).trim());
    const nats = await connect({
      servers: url,
      authenticator: nkeyAuthenticator(seed),
      inboxPrefix: `_INBOX.${encodeToken(tenant)}.${encodeToken(name)}`,
      maxReconnectAttempts: 0,
    });
    const agent = new PlainAgent(nats, nkeys.fromSeed(seed).getPublicKey(), identity);
    void agent.#listen();
    return agent;
  }

  async #listen(): Promise<void> {
    for await (const { type, ...rest } of this.nats.status()) {
      if (type !== "error" || !("error" in rest)) continue;
      const { error } = rest;
      if (error instanceof PermissionViolationError) {
        this.violations.push({ operation: error.operation, subject: error.subject });
      }
    }
  }

  inbox(): string {
    return `_INBOX.${encodeToken(this.tenant)}.${encodeToken(this.name)}.${crypto.randomUUID()}`;
  }

  /** Says it under its own name, and waits for the verdict. */
  async say(
    sent: Envelope,
    {
      more = {},
      subject = this.intake(sent.type),
    }: { more?: Record<string, string>; subject?: string } = {},
  ): Promise<Answer> {
    return this.sayBytes(JSON.stringify(sent), subject, more);
  }

  async sayBytes(
    body: string | Uint8Array,
    subject: string,
    more: Record<string, string> = {},
  ): Promise<Answer> {
    const inbox = this.inbox();
    const answers = this.nats.subscribe(inbox, { max: 1 });
    const all = headers();
    for (const [name, value] of Object.entries({ "Hv-Reply-To": inbox, ...more }))
      all.set(name, value);
    this.nats.publish(subject, body, { headers: all });
    const answer = await within(DEADLINE_MS, `a verdict on ${subject}`, first(answers));
    const verdict = answer.json<Answer>();
    if (verdict.type.endsWith("rejected")) this.refusals.push(verdict);
    return verdict;
  }

  intake(type: string): string {
    return intakeSubject({ tenant: this.tenant, domain: domainOf(type), source: this.name, type });
  }

  /** A read under its own name. */
  async ask(domain: Domain, verb: string, params: JsonObject = {}): Promise<JsonObject> {
    const subject = rpcSubject({ tenant: this.tenant, source: this.name, domain, verb });
    const answer = await this.nats.request(subject, JSON.stringify(params), {
      timeout: DEADLINE_MS,
    });
    return answer.json<JsonObject>();
  }

  /** A task of its own, from nothing to its end. */
  async honest(task: string): Promise<void> {
    for (const type of ["task.submitted", "task.accepted", "task.started", "task.completed"]) {
      const answer = await this.say(envelope(this.name, type, task));
      assert.equal(answer.type, "event.acknowledged", JSON.stringify(answer));
    }
  }

  /**
   * Resolves when the server has said that it forbids this, to the agent and in its log, where it names the agent's
   * key: once for each time that it was tried.
   */
  async forbidden(operation: "publish" | "subscription", subject: string): Promise<void> {
    await eventually(DEADLINE_MS, `${operation} of ${subject} is forbidden`, () => {
      const at = this.violations.findIndex(
        (seen) => seen.operation === operation && seen.subject === subject,
      );
      return at < 0 ? undefined : this.violations.splice(at, 1);
    });
    const kind = operation === "publish" ? "Publish Violation" : "Subscription Violation";
    const line = await eventually(
      DEADLINE_MS,
      `the server's log tells of the ${operation} of ${subject} by ${this.name}`,
      () =>
        this.#serverLog()
          .split("\n")
          .find((one) => this.#isAbout(one, kind, subject)),
    );
    this.#shown.add(line);
  }

  #isAbout(line: string, kind: string, subject: string): boolean {
    return (
      [kind, this.#publicKey, `Subject "${subject}"`].every((part) => line.includes(part)) &&
      !this.#shown.has(line)
    );
  }

  async close(): Promise<void> {
    await this.nats.close();
  }
}

async function first(messages: AsyncIterable<Msg>): Promise<Msg> {
  for await (const message of messages) return message;
  throw new Error("the subscription has ended");
}
