/** An agent of the test's own process: sends the same bytes until it is answered. */
import { connectBus, HEADER, type Headers, intakeSubject, type JetStreamBus } from "@harmovela/bus";
import { domainOf, type Envelope } from "@harmovela/envelope";
import { within } from "./deadline.ts";

const RESEND_MS = 300;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

let made = 0;
/** An envelope of `agent:<name>` with an id of its own. */
export function envelope(
  source: string,
  type: string,
  task_id: string,
  more: Partial<Envelope> = {},
): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_${process.pid}_${made}`,
    type,
    source,
    created_at: "2026-11-30T10:00:00Z",
    task_id,
    payload: {},
    ...more,
  };
}

export interface Answer {
  type: string;
  causation_id?: string;
  payload: {
    cursor?: string;
    pending?: boolean;
    duplicate?: boolean;
    error?: { code: string; details?: Record<string, unknown> };
  };
}

export class Sender implements AsyncDisposable {
  readonly bus: JetStreamBus;
  readonly tenant: string;
  readonly #inbox: string;
  readonly #waiting = new Map<string, (answer: Answer) => void>();
  #count = 0;
  /** Attempts beyond the first of each envelope. */
  resent = 0;

  private constructor(bus: JetStreamBus, tenant: string) {
    this.bus = bus;
    this.tenant = tenant;
    this.#inbox = bus.newInbox();
    bus.subscribe(`${this.#inbox}.*`, ({ subject, data }) => {
      this.#waiting.get(subject)?.(JSON.parse(decoder.decode(data)) as Answer);
    });
  }

  static async open(url: string | string[], tenant: string): Promise<Sender> {
    return new Sender(await connectBus({ servers: url, name: `sender of ${tenant}` }), tenant);
  }

  /** One attempt, stored in the intake; `reply` is where nobody need listen. Resolves with its store time. */
  async post(sent: Envelope, reply?: string): Promise<number> {
    const { type, source } = sent;
    const subject = intakeSubject({ tenant: this.tenant, domain: domainOf(type), source, type });
    const headers: Headers = reply === undefined ? {} : { [HEADER.replyTo]: reply };
    const data = encoder.encode(JSON.stringify(sent));
    const { stream, seq } = await this.bus.store(subject, headers, data);
    return (await this.bus.read(stream, seq))?.time ?? Number.NaN;
  }

  /** Sends until it is answered, at most `deadlineMs`. */
  async send(sent: Envelope, deadlineMs = 30_000): Promise<Answer> {
    this.#count += 1;
    const reply = `${this.#inbox}.${this.#count}`;
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(reply, resolve));
    const attempt = () => {
      this.post(sent, reply).catch(() => {
        // The next attempt may reach the server.
      });
    };
    attempt();
    const timer = setInterval(() => {
      this.resent += 1;
      attempt();
    }, RESEND_MS);
    try {
      return await within(deadlineMs, `an answer to ${sent.id} ${sent.type}`, answered);
    } finally {
      clearInterval(timer);
      this.#waiting.delete(reply);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bus.close();
  }
}
