/** Reads, acts, replays and `$SRV` discovery over the answering connection (architecture, section 3). */
import {
  type CoreMessage,
  decodeEntry,
  logStream,
  parseRpcSubject,
  type Subscription,
} from "@harmovela/bus";
import type { Envelope, Instant } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { HostStatus } from "../host-status.ts";
import type { Act } from "../options.ts";
import { ReplayDesk } from "../replay/desk.ts";
import { Turns } from "../replay/turns.ts";
import { listenForDiscovery } from "./discovery.ts";
import { parseParams } from "./params.ts";
import { ReadsUnderWay } from "./reads-under-way.ts";
import { type Asked, errorOf, Reception, type ReceptionContext } from "./reception.ts";

/** A read that names a cursor waits for it this long. */
const CURSOR_WAIT_MS_MAX = 5_000;
/** How often it looks whether the cursor was reached. */
const CURSOR_LOOK_MS = 10;
/** An act may bring a part of something larger, in base64. */
const ACT_BYTES_MAX = 512 * 1024;
/** Acts under way or waiting in one process: each may hold such a part. */
const ACTS_MAX = 128;
const ACTS_AT_ONCE = 32;
/** Some wait for seconds: a tenant leaves places for others. */
const ACTS_AT_ONCE_OF_TENANT = 24;
/** Acts of one agent: it sends the parts of one thing one after the other. */
const ACTS_PER_AGENT_MAX = 8;

export interface View<State> {
  state: State;
  position: number;
  now: Instant;
  /** What was folded into the state; another one after the state was built anew. */
  source: object;
}

export interface AnswererContext<State> extends ReceptionContext<State> {
  view(): View<State>;
  isServing(): boolean;
  /** Calls `answer` once everything up to the view's position is stored, or `drop` when it never will be. */
  whenStored(
    view: Pick<View<unknown>, "position" | "source">,
    answer: () => void,
    drop: () => void,
  ): void;
  /** Appends what is issued before it returns; undefined while another replica leads. */
  issueToken(request: {
    tenant: string;
    source: string;
    params: JsonObject;
  }): Promise<{ view: View<State>; result: JsonObject } | undefined>;
  /** What an act may rest on; undefined while another replica leads. */
  leading(): { state: State; now: Instant } | undefined;
  status(): HostStatus;
}

/** The read that writes: every replica hears it, and the leader answers. */
const ISSUING_VERB = "token";
/** The read of the log itself, which every service has. */
const REPLAY_VERB = "replay";

export class Answerer<State> {
  readonly #context: AnswererContext<State>;
  #subscriptions: Subscription[] = [];
  readonly #underWay = new ReadsUnderWay();
  readonly #reception: Reception<State>;
  readonly #replays: ReplayDesk;
  readonly #acting = new Turns({
    atOnce: ACTS_AT_ONCE,
    atOnceOfTenant: ACTS_AT_ONCE_OF_TENANT,
    each: ACTS_PER_AGENT_MAX,
    all: ACTS_MAX,
    reserved: ACTS_PER_AGENT_MAX,
  });

  constructor(context: AnswererContext<State>) {
    this.#context = context;
    const { writer, carrier = writer, clock, domain } = context.options;
    this.#reception = new Reception(context, [ISSUING_VERB]);
    this.#replays = new ReplayDesk({ bus: carrier, clock, domain });
  }

  open(): void {
    const { answerer, domain, acts = {} } = this.#context.options;
    const reads = answerer.subscribe(
      `hv.*.rpc.*.${domain}.*`,
      (message) => this.#onRead(message, false),
      `harmovela-${domain}`,
    );
    const issues = answerer.subscribe(`hv.*.rpc.*.${domain}.${ISSUING_VERB}`, (message) =>
      this.#onRead(message, true),
    );
    // The leader's to answer, so every replica hears them.
    const acting = Object.entries(acts).map(([verb, act]) =>
      answerer.subscribe(`hv.*.rpc.*.${domain}.${verb}`, (message) => this.#onAct(message, act)),
    );
    const { counters, status } = this.#context;
    const discovery = listenForDiscovery(
      { options: this.#context.options, counters, status, builtIn: [REPLAY_VERB] },
      (reply, answer) => this.#reception.reply(reply, "_INBOX.", answer),
    );
    this.#subscriptions = [reads, issues, ...acting, ...discovery];
  }

  close(): void {
    this.#reception.close();
    for (const subscription of this.#subscriptions.splice(0)) subscription.close();
    this.#replays.close();
  }

  #onRead(message: CoreMessage, isIssue: boolean): void {
    const { options, counters } = this.#context;
    const verb = parseRpcSubject(message.subject)?.verb;
    const isIssuing = options.issueToken !== undefined && options.tokens !== undefined;
    if (isIssue !== (isIssuing && verb === ISSUING_VERB)) return;
    if (verb !== undefined && Object.hasOwn(options.acts ?? {}, verb)) return;
    const asked = this.#reception.receive(message);
    if (asked === undefined) return;
    counters.add("reads");
    if (!this.#reception.admit(asked)) return;
    const { tenant, source } = asked.to;
    if (verb === "status") {
      // Rests on nothing that is not stored, and is needed most when everything else waits.
      this.#reception.answer(asked, { status: this.#statusFor(asked) });
      return;
    }
    if (!this.#underWay.begin(tenant, source)) {
      const details = { reason: "rate_limited" };
      const facts = { category: "dependency", details } as const;
      this.#reception.fail(asked, new HarmovelaError("internal_error", "too many reads", facts));
      return;
    }
    const end = (answer: JsonObject): void => {
      this.#underWay.end(tenant, source);
      this.#reception.answer(asked, answer);
    };
    const fail = (error: unknown): void => end({ error: errorOf(error) });
    if (verb === REPLAY_VERB) {
      this.#replay(asked).then(end, fail);
      return;
    }
    const answered = isIssue ? this.#issue(asked) : this.#answer(asked);
    answered.then((found) => {
      if (found === undefined) {
        this.#underWay.end(tenant, source);
        return;
      }
      const { view, answer } = found;
      return this.#context.whenStored(
        view,
        () => end(answer),
        () => fail(new HarmovelaError("internal_error", "ask again", { category: "dependency" })),
      );
    }, fail);
  }

  /** Counters and alarms are about all tenants, so a tenant hears of neither. */
  #statusFor(asked: Asked): JsonValue {
    const status = this.#context.status();
    if (!this.#reception.isTenant(asked)) return status as unknown as JsonValue;
    const { domain, service, instance, role, isReady, position, isSettled } = status;
    return { domain, service, instance, role, isReady, position, isSettled };
  }

  /** A question that changes something beside the state. It is answered while this replica leads, else by another. */
  #onAct(message: CoreMessage, act: Act): void {
    const { counters, leading } = this.#context;
    if (leading() === undefined) return;
    const asked = this.#reception.receive(message);
    if (asked === undefined) return;
    counters.add("acts");
    if (!this.#reception.admit(asked)) return;
    const { tenant, source } = asked.to;
    this.#acting
      .run({ tenant, source }, async () => {
        const params = parseParams(message.data, ACT_BYTES_MAX);
        await this.#observe(params.seen);
        return act({ tenant, source }, params);
      })
      .then(
        (result) => this.#reception.answer(asked, { result }),
        (error: unknown) => this.#reception.fail(asked, error),
      );
  }

  /** Waits until the leader has folded of the observed logs what the asker has seen of them. */
  async #observe(seen: JsonValue | undefined): Promise<void> {
    if (seen === undefined) return;
    const { options, status } = this.#context;
    const match = typeof seen === "string" ? /^(.*):(\d{1,15})$/.exec(seen) : null;
    const domain = options.observes.find((observed) => logStream(observed) === match?.[1]);
    if (domain === undefined)
      throw new HarmovelaError(
        "invalid_query",
        "seen must be a position in a log that is observed",
      );
    await this.#until(() => (status().seen[domain] ?? 0) >= Number(match?.[2]));
  }

  async #replay({ to, data }: Asked): Promise<JsonObject> {
    this.#context.counters.add("replays");
    return { result: await this.#replays.answer(to, parseParams(data)) };
  }

  /** Undefined when it is another replica's to answer. */
  async #issue({
    to: { tenant, source },
    data,
  }: Asked): Promise<{ view: View<State>; answer: JsonObject } | undefined> {
    const issued = await this.#context.issueToken({ tenant, source, params: parseParams(data) });
    if (issued === undefined) return undefined;
    const { view, result } = issued;
    const position = `${logStream(this.#context.options.domain)}:${view.position}`;
    return { view, answer: { position, result } };
  }

  async #answer({ to, data }: Asked): Promise<{ view: View<State>; answer: JsonObject }> {
    const { options } = this.#context;
    const stream = logStream(options.domain);
    const handler = Object.hasOwn(options.reads, to.verb) ? options.reads[to.verb] : undefined;
    if (handler === undefined) {
      throw new HarmovelaError("invalid_query", "there is no such read", {
        details: { verbs: [...Object.keys(options.reads), REPLAY_VERB, "status"] },
      });
    }
    const params = parseParams(data);
    await this.#reach(params.cursor, stream);
    const view = this.#context.view();
    const { state, position, now } = view;
    let answer: JsonObject;
    try {
      const result = await handler(state, params, {
        tenant: to.tenant,
        source: to.source,
        now,
        event: async (seq, domain = options.domain) => {
          if (domain !== options.domain && !options.observes.includes(domain)) return undefined;
          const stored = await options.answerer.read(logStream(domain), seq);
          const entry = stored === undefined ? undefined : decodeEntry(stored);
          return entry?.kind === "event" ? (entry.envelope as Envelope) : undefined;
        },
        signature: async (envelope) => await options.agentKeys?.look(envelope, to.tenant),
      });
      answer = { position: `${stream}:${position}`, result };
    } catch (error) {
      // "There is no such task" rests on the state as much as any other answer.
      answer = { error: errorOf(error) };
    }
    // The state may have moved on while the handler waited: the answer rests on all of it.
    const { source, position: reached } = this.#context.view();
    const rests = source === view.source ? { ...view, position: reached } : view;
    return { view: rests, answer };
  }

  /** Waits until the state holds what the reader has already seen acknowledged. */
  async #reach(cursor: JsonValue | undefined, stream: string): Promise<void> {
    const { isServing, view } = this.#context;
    let wanted = 0;
    if (cursor !== undefined) {
      const match = typeof cursor === "string" ? /^(.*):(\d{1,15})$/.exec(cursor) : null;
      if (match?.[1] !== stream) {
        throw new HarmovelaError(
          "invalid_query",
          `the cursor must be of the form ${stream}:<sequence>`,
        );
      }
      wanted = Number(match[2]);
    }
    await this.#until(() => isServing() && view().position >= wanted);
  }

  async #until(isReached: () => boolean): Promise<void> {
    const { clock } = this.#context.options;
    const until = clock.monotonic() + CURSOR_WAIT_MS_MAX;
    while (!isReached()) {
      if (clock.monotonic() >= until) {
        throw new HarmovelaError("internal_error", "the cursor was not reached in time", {
          category: "dependency",
        });
      }
      await new Promise<void>((resolve) => clock.after(CURSOR_LOOK_MS, resolve));
    }
  }
}
