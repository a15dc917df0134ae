/**
 * Given / when / then for deciders: a host small enough to read, with a list as its log and a clock
 * that the test sets. It numbers, stamps and folds as the real one does; it checks no schema.
 */
import assert from "node:assert/strict";
import {
  type Cause,
  canonicalJson,
  type Decider,
  type Decision,
  type Domain,
  type DomainEntry,
  deriveId,
  type Envelope,
  type EventEntry,
  type Grants,
  type Instant,
  type Judged,
  type Owed,
  type TokenIssue,
} from "@harmovela/envelope";
import type { ErrorCode, ErrorPayload, JsonObject } from "@harmovela/failure";

const NOTHING_UNDER_WAY = { requests: new Set<string>() };
/** A plan that does not end within so many entries is taken for one that never ends. */
const SETTLE_STEPS_MAX = 2_000_000;

export interface GivenOptions {
  tenant?: string;
  service?: string;
  /** Where the clock stands at first. */
  at?: Instant;
  /** What the connection of a sender may do; without it nobody is proved. */
  grants?: (tenant: string, source: string) => Grants | undefined;
  /** Positions, where they are not simply the next ones. */
  numbering?: Numbering;
}

/** Which position an intake message and an entry get, and what an entry says of the observed logs. */
export interface Numbering {
  intake(): number;
  seq(): number;
  seen(): Readonly<Partial<Record<Domain, number>>>;
}

/** What `when` says: the decision, and the entry it made, if any. */
export interface Outcome {
  decision: Decision;
  entry: DomainEntry | undefined;
}

type ObservedEntry = Extract<DomainEntry, { kind: "observed" }>;

/** Something that a decider was told from outside: by agents, by other logs, of the logs themselves. */
export type Act =
  | { kind: "message"; at: Instant; input: Judged }
  | { kind: "observed"; at: Instant; domain: Domain; entry: DomainEntry }
  | { kind: "own"; at: Instant; entry: ObservedEntry };

export class Given<State> {
  readonly decider: Decider<State>;
  /** What it was told, in its order; what it owes by itself is not among it. */
  readonly acts: Act[] = [];
  readonly tenant: string;
  readonly service: string;
  readonly log: DomainEntry[] = [];
  /** Entries of observed logs, and how long the own log was when each was folded. */
  readonly observed: { domain: Domain; entry: EventEntry; after: number }[] = [];
  state: State;
  now: Instant;
  readonly #grants: (tenant: string, source: string) => Grants | undefined;
  readonly #numbering: Numbering;
  #intake = 0;
  #seen: Readonly<Partial<Record<Domain, number>>> = {};
  readonly #settled = new Map<string, { seq: number; content: string }>();

  constructor(decider: Decider<State>, options: GivenOptions) {
    this.decider = this.#recording(decider);
    this.state = decider.initial();
    this.tenant = options.tenant ?? "acme";
    this.service = options.service ?? "service:test";
    this.now = options.at ?? Date.UTC(2026, 10, 30);
    this.#grants = options.grants ?? (() => undefined);
    this.#numbering = options.numbering ?? {
      intake: () => {
        this.#intake += 1;
        return this.#intake;
      },
      seq: () => this.log.length + 1,
      seen: () => this.#seen,
    };
  }

  #recording(base: Decider<State>): Decider<State> {
    const { acts } = this;
    const { observe } = base;
    return {
      ...base,
      decide: (state, input, context) => {
        if (state === this.state) acts.push({ kind: "message", at: context.now, input });
        return base.decide(state, input, context);
      },
      evolve: (state, entry) => {
        if (entry.kind === "observed" && state === this.state)
          acts.push({ kind: "own", at: entry.at, entry });
        base.evolve(state, entry);
      },
      ...(observe === undefined
        ? {}
        : {
            observe: (state, domain, entry) => {
              if (state === this.state)
                acts.push({ kind: "observed", at: entry.at, domain, entry });
              observe.call(base, state, domain, entry);
            },
          }),
    };
  }

  /** Judges envelopes that must all be taken. */
  given(...envelopes: Envelope[]): this {
    for (const envelope of envelopes) {
      const { decision } = this.judge(envelope);
      const isTaken = "accept" in decision || "begin" in decision;
      assert.ok(isTaken, `${envelope.id} ${envelope.type}: ${JSON.stringify(decision)}`);
    }
    return this;
  }

  /** Judges one envelope, for one of the assertions of `Then`. */
  when(envelope: Envelope): Then<State> {
    return new Then(this, envelope, this.judge(envelope));
  }

  at(now: Instant): this {
    this.now = now;
    return this;
  }

  wait(ms: number): this {
    return this.at(this.now + ms);
  }

  /** Decides, logs and folds one envelope in the order of the intake. */
  judge(envelope: Envelope, tenant = this.tenant): Outcome {
    const { source } = envelope;
    const grants = this.#grants(tenant, source);
    return this.judgeInput({
      envelope,
      tenant,
      source,
      ...(grants === undefined ? {} : { grants }),
    });
  }

  /** The same with all that the host finds out about a message. */
  judgeInput(input: Omit<Judged, "intake">): Outcome {
    const intake = this.#numbering.intake();
    const { now } = this;
    const { envelope, tenant } = input;
    const key = `${tenant} ${envelope.id}`;
    const content = canonicalJson(envelope);
    const known = this.#settled.get(key);
    if (known) {
      const isSame = known.content === content;
      return {
        decision: isSame
          ? { duplicate: { seq: known.seq } }
          : { reject: { code: "protocol_error", message: "id in use", retryable: false } },
        entry: undefined,
      };
    }
    const decision = this.decider.decide(
      this.state,
      { ...input, intake },
      { now, deriveId: (index) => deriveId(tenant, `in:${intake}`, index, now) },
    );
    const entry = this.#enter(decision, envelope, { in: intake }, tenant);
    if (entry) this.#settled.set(key, { seq: entry.seq, content });
    return { decision, entry };
  }

  /** The next obligation at the clock's time; the answer must be the same when asked again. */
  owed(): Owed | undefined {
    const first = this.decider.owed(this.state, this.now, NOTHING_UNDER_WAY);
    const second = this.decider.owed(this.state, this.now, NOTHING_UNDER_WAY);
    assert.deepEqual(second, first, "an obligation asked for twice");
    return first;
  }

  /** Works off one obligation; undefined when none is due. */
  step(): DomainEntry | undefined {
    const owed = this.decider.owed(this.state, this.now, NOTHING_UNDER_WAY);
    if (owed === undefined || "wakeAt" in owed || "request" in owed) return undefined;
    const cause = { owed: owed.cause };
    return "begin" in owed
      ? this.append({ kind: "begun", plan: owed.begin, cause, tenant: owed.tenant })
      : this.append({ kind: "event", envelope: owed.event, cause, tenant: owed.tenant });
  }

  /** Works off what is due at the clock's time, and returns the entries made. */
  settle(now: Instant = this.now): DomainEntry[] {
    this.now = now;
    const made: DomainEntry[] = [];
    for (let entry = this.step(); entry; entry = this.step()) {
      made.push(entry);
      assert.ok(made.length < SETTLE_STEPS_MAX, "the service never comes to rest");
    }
    return made;
  }

  /** Folds an event of another domain's log, as its service wrote it: because of a message, unless `owed`. */
  observe(
    domain: Domain,
    envelope: Envelope,
    { owed, tenant = this.tenant }: { owed?: string; tenant?: string } = {},
  ): this {
    const seq = (this.#seen[domain] ?? 0) + 1;
    const cause: Cause = owed === undefined ? { in: seq } : { owed };
    const frame = { seq, at: this.now, epoch: 1, prev: seq - 1, seen: {}, tenant, cause };
    const entry: EventEntry = { kind: "event", ...frame, envelope: stamped(envelope, seq) };
    this.#seen = { ...this.#seen, [domain]: seq };
    this.decider.observe?.(this.state, domain, entry);
    this.observed.push({ domain, entry, after: this.log.length });
    return this;
  }

  /** Reports an obligation as one that cannot be met. */
  fail(id: string, reason = "cannot be appended", tenant = this.tenant): DomainEntry {
    return this.append({ kind: "obligation_failed", id, reason, cause: { owed: id }, tenant });
  }

  append(
    body: { cause: Cause; tenant: string; verdict?: JsonObject } & (
      | { kind: "event"; envelope: Envelope }
      | { kind: "begun"; plan: Extract<DomainEntry, { kind: "begun" }>["plan"] }
      | { kind: "obligation_failed"; id: string; reason: string }
      | { kind: "token_issued"; body: TokenIssue }
      | { kind: "observed"; first: Partial<Record<Domain, number>> }
    ),
  ): DomainEntry {
    const seq = this.#numbering.seq();
    const frame = { seq, at: this.now, epoch: 1, prev: seq - 1, seen: this.#numbering.seen() };
    const entry: DomainEntry =
      body.kind === "event"
        ? { ...frame, ...body, envelope: stamped(body.envelope, seq) }
        : { ...frame, ...body };
    this.decider.evolve(this.state, entry);
    this.log.push(entry);
    return entry;
  }

  /** The log's events without refusals, as `<type without task.> <task id>`. */
  events(from = 0): EventEntry[] {
    return this.log
      .slice(from)
      .filter((entry) => entry.kind === "event")
      .filter((entry) => entry.envelope.type !== "event.rejected");
  }

  /** The state that a fresh fold of the whole log gives, and of what was observed, in the same order. */
  refold(): State {
    return this.foldOn(this.decider.initial());
  }

  /** Folds what came after `from` own and `seen` observed entries onto a state. */
  foldOn(state: State, from = 0, seen = 0): State {
    const observed = this.observed.slice(seen);
    const look = (after: number): void => {
      while (observed[0] !== undefined && observed[0].after <= after) {
        const { domain, entry } = observed.shift() ?? observed[0];
        this.decider.observe?.(state, domain, entry);
      }
    };
    for (const [index, entry] of this.log.entries()) {
      if (index < from) continue;
      look(index);
      this.decider.evolve(state, entry);
    }
    look(this.log.length);
    return state;
  }

  #enter(decision: Decision, envelope: Envelope, cause: Cause, tenant: string) {
    if ("accept" in decision) {
      const { accept, verdict = {} } = decision;
      return this.append({ kind: "event", envelope: accept, cause, tenant, verdict });
    }
    if ("begin" in decision) {
      const { begin: plan, verdict = {} } = decision;
      return this.append({ kind: "begun", plan, cause, tenant, verdict });
    }
    if ("reject" in decision) {
      const type = decision.as ?? "event.rejected";
      return this.append({
        kind: "event",
        envelope: this.#refusal(type, decision.reject, envelope, tenant),
        cause,
        tenant,
      });
    }
    return undefined;
  }

  #refusal(type: string, error: ErrorPayload, envelope: Envelope, tenant: string): Envelope {
    const { task_id } = envelope;
    return {
      spec_version: "0.2",
      id: deriveId(tenant, envelope.id, "refusal", this.now),
      type,
      source: this.service,
      target: envelope.source,
      created_at: new Date(this.now).toISOString(),
      causation_id: envelope.id,
      ...(task_id === undefined ? {} : { task_id }),
      payload: {
        acknowledged_event_id: envelope.id,
        error: JSON.parse(JSON.stringify(error)) as JsonObject,
      },
    };
  }
}

function stamped(envelope: Envelope, seq: number): Envelope {
  const delivery = { ...envelope.delivery, sequence: seq, cursor: `HV_LOG_TEST:${seq}` };
  return { ...envelope, delivery };
}

/** The assertions about one judged envelope; each returns the scenario, to go on with. */
export class Then<State> {
  readonly #scenario: Given<State>;
  readonly #envelope: Envelope;
  readonly outcome: Outcome;

  constructor(scenario: Given<State>, envelope: Envelope, outcome: Outcome) {
    this.#scenario = scenario;
    this.#envelope = envelope;
    this.outcome = outcome;
  }

  accepted(verdict?: JsonObject): Given<State> {
    const { decision } = this.outcome;
    if (!("accept" in decision)) return this.#differs("accept");
    if (verdict) assert.deepEqual(decision.verdict, verdict);
    return this.#scenario;
  }

  /** `details` must be contained in the refusal's own. */
  rejected(code: ErrorCode, details: JsonObject = {}): Given<State> {
    const { decision } = this.outcome;
    if (!("reject" in decision)) return this.#differs(`reject ${code}`);
    assert.equal(decision.reject.code, code, JSON.stringify(decision.reject));
    for (const [key, value] of Object.entries(details)) {
      assert.deepEqual(decision.reject.details?.[key], value, `details.${key}`);
    }
    return this.#scenario;
  }

  begun(kind: string): Given<State> {
    const { decision } = this.outcome;
    if (!("begin" in decision)) return this.#differs(`begin ${kind}`);
    assert.equal(decision.begin.kind, kind);
    return this.#scenario;
  }

  duplicate(seq?: number): Given<State> {
    const { decision } = this.outcome;
    if (!("duplicate" in decision)) return this.#differs("duplicate");
    if (seq !== undefined) assert.equal(decision.duplicate.seq, seq);
    return this.#scenario;
  }

  ignored(): Given<State> {
    if (!("ignore" in this.outcome.decision)) return this.#differs("ignore");
    return this.#scenario;
  }

  #differs(expected: string): never {
    const got = JSON.stringify(this.outcome.decision);
    assert.fail(`${this.#envelope.id} ${this.#envelope.type}: wanted ${expected}, got ${got}`);
  }
}

/** A scenario on an empty log. */
export function given<State>(decider: Decider<State>, options: GivenOptions = {}): Given<State> {
  return new Given(decider, options);
}
