/**
 * One simulated life of the attester: replicas beside logs that grow and lose their beginnings, agents that
 * attest and revoke, faults for a while, then none; at rest everything that was promised must be true.
 */
import assert from "node:assert/strict";
import { intakeStream, logStream, MemoryServer } from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  type AttesterState,
  createAttester,
  DEFAULT_ATTESTER_SETTINGS,
  describeState,
} from "@harmovela/provenance-attester";
import { FakeClock, SimRandom } from "@harmovela/testkit";
import { Chaos, emptyTally, type Tally } from "./chaos.ts";
import { Crowd, isRetryable, type Sent } from "./crowd.ts";
import type { Draft } from "./drafts.ts";
import { LineageBook, STREAM } from "./lineage-book.ts";
import { Replica } from "./replica.ts";
import { Scribe } from "./scribe.ts";
import { View } from "./view.ts";

const T0 = Date.UTC(2026, 10, 30, 10);
/** Simulated time within which everything must have come to rest after the last fault. */
const REST_MS_MAX = 600_000;
const FIRST_LEADER_MS_MAX = 30_000;
const LOOK_EVERY_MS = 250;
const TURNS_MAX = 3_000_000;
/** In every so many lives so little is remembered that the oldest goes before its time. */
const FORGETFUL_EVERY = 5;
const CUTS = 2;
const VOUCHERS = ["agent:v", "agent:w", "agent:x", "agent:a", "agent:b"] as const;
const JUDGE = "agent:judge";

export interface AttesterLife {
  lines: readonly string[];
  tally: Tally;
  /** What came of what was said. */
  attested: number;
  revoked: number;
  waited: number;
  neverSeen: number;
  truncated: number;
  counted: number;
}

/** Lives one life; throws at the first promise that is broken. */
export async function simulateAttester(seed: number): Promise<AttesterLife> {
  return new World(seed).live();
}

class World {
  readonly #clock = new FakeClock();
  readonly #server: MemoryServer;
  readonly #random: SimRandom;
  readonly #isForgetful: boolean;
  readonly #definition: ReturnType<typeof createAttester>;
  readonly #book: LineageBook;
  readonly #scribe: Scribe;
  readonly #crowd: Crowd;
  readonly #chaos: Chaos;
  readonly #tally = emptyTally();
  readonly #replicas: Replica<AttesterState>[] = [];
  /** Attestations that were sent. */
  readonly #sent: { id: string; source: string }[] = [];
  /** Where the observed logs are said to begin. */
  readonly #first = new Map<string, number>();
  readonly #size: number;
  #said = 0;
  #stepMs = 0;
  #failure: unknown;

  constructor(seed: number) {
    const random = (stream: number): SimRandom => new SimRandom(seed, stream);
    this.#random = random(1);
    this.#size = this.#random.pick([20, 40, 80]);
    this.#isForgetful = seed % FORGETFUL_EVERY === 2;
    this.#server = new MemoryServer({ clock: this.#clock, now: () => this.#now() });
    this.#definition = createAttester({
      ...DEFAULT_ATTESTER_SETTINGS,
      authorities: [JUDGE],
      evidenceWaitMs: this.#random.pick([200, 3_000, 30_000]),
      ...(this.#isForgetful ? { rememberedMax: 40, retentionMs: 5_000 } : {}),
    });
    this.#book = new LineageBook(this.#definition.decider, this.#server);
    const agents = this.#server.connect({ name: "agents" });
    this.#scribe = new Scribe({
      seed,
      random: random(2),
      bus: this.#server.connect({ name: "scribe" }),
      now: () => this.#now(),
      size: this.#size,
    });
    const ofReplicas = random(3);
    for (const name of ["one", "two"]) {
      this.#replicas.push(
        new Replica<AttesterState>({
          name,
          server: this.#server,
          clock: this.#clock,
          random: ofReplicas,
          definition: this.#definition,
          options: { observedEveryMs: 400 },
          onLook: (stream, state) => {
            const first = this.#first.get(stream) ?? state.firstSeq;
            return { ...state, firstSeq: first, messages: state.lastSeq - first + 1 };
          },
          onLease: (replica) => this.#chaos.onLease(replica),
          onAppend: (replica, subject) => {
            this.#readLog();
            this.#chaos.onAppend(replica, subject);
          },
          onRestored: () => {
            this.#tally.snapshotStarts += 1;
          },
          onStopped: (replica, error) => {
            this.#failure ??= new Error(`${replica.instance} stopped by itself`, { cause: error });
          },
        }),
      );
    }
    this.#crowd = new Crowd({
      domain: "provenance",
      agents,
      observer: this.#server.connect({ name: "observer" }),
      clock: this.#clock,
      view: new View(),
      onVerdict: () => {},
    });
    this.#chaos = new Chaos({
      domain: "provenance",
      random: random(4),
      clock: this.#clock,
      server: this.#server,
      replicas: this.#replicas,
      oracle: this.#book,
      tally: this.#tally,
      stepBrokerClock: (ms) => {
        this.#stepMs += ms;
      },
      restartServer: () => {
        for (const replica of this.#replicas) replica.cut("lost");
        agents.disconnected("lost");
        for (const replica of this.#replicas) replica.mend();
        agents.reconnected();
      },
      appendForeign: () => {
        const type = "provenance.attestation.revoked";
        const foreign = { id: "evt_foreign", type, source: "agent:x", payload: {} };
        const subject = `hv.${this.#scribe.tenant}.log.provenance.agent:x.-.${type}`;
        agents.publish(subject, {}, Buffer.from(JSON.stringify(foreign)));
      },
    });
  }

  #now(): number {
    return T0 + this.#stepMs + Math.floor(this.#clock.monotonic());
  }

  async live(): Promise<AttesterLife> {
    for (const replica of this.#replicas) replica.start();
    await this.#until(FIRST_LEADER_MS_MAX, () => this.#replicas.some(({ isLeader }) => isLeader));
    this.#chaos.start();
    this.#speak();
    await this.#until(REST_MS_MAX, () => this.#said >= this.#size && this.#scribe.isDone);
    this.#chaos.heal();
    await this.#until(REST_MS_MAX, () => this.#isAtRest());
    return this.#verify();
  }

  #speak(): void {
    const random = this.#random;
    for (let count = random.whole(0, 4); count > 0; count -= 1) this.#scribe.next();
    if (this.#said < this.#size && this.#scribe.said.length > 0) {
      this.#said += 1;
      this.#crowd.send(this.#draft());
    }
    if (random.chance(0.08)) this.#lose(random.pick(["tasks", "beliefs", "beliefs"]));
    if (this.#said >= this.#size && this.#scribe.isDone) return;
    this.#clock.after(random.whole(0, random.pick([5, 50, 600])), () => this.#speak());
  }

  /** A log is said to begin later: that it is gone is known from there, and everybody can still read it. */
  #lose(domain: "tasks" | "beliefs"): void {
    const stream = logStream(domain);
    const before = this.#first.get(stream) ?? 1;
    const last = this.#server.stream(stream)?.lastSeq ?? 0;
    if (last > before) this.#first.set(stream, this.#random.whole(before, last));
  }

  #draft(): Draft {
    const random = this.#random;
    const known = this.#sent.length === 0 ? undefined : random.pick(this.#sent);
    if (known !== undefined && random.chance(0.25)) {
      const source = random.pick([known.source, known.source, known.source, JUDGE, "agent:v"]);
      const of = random.chance(0.9) ? known.id : this.#scribe.anyId();
      return this.#say("revoked", source, { causation_id: of }, { reason: "wrong" });
    }
    const of = random.chance(0.1) && known !== undefined ? known.id : this.#scribe.anyId();
    if (random.chance(0.05)) {
      const source = this.#scribe.sourceOf(of) ?? "agent:a";
      const payload = { earliest_available: of, missing_from: this.#scribe.anyId(), reason: "r" };
      return this.#say("truncated", source, { causation_id: of }, payload);
    }
    const before = this.#scribe.anyId();
    const chain = [before, of].map((id) => ({
      id,
      source: this.#scribe.sourceOf(id) ?? "agent:a",
    }));
    const more = random.chance(0.2) ? { evidence_chain: chain } : {};
    const source = random.pick(VOUCHERS);
    const payload = { attestor: source, method: "m" };
    const draft = this.#say("added", source, { causation_id: of, ...more }, payload);
    this.#sent.push({ id: String(draft.envelope.id), source });
    return draft;
  }

  #say(
    name: "added" | "revoked" | "truncated",
    source: string,
    fields: Partial<Envelope>,
    payload: JsonObject,
  ): Draft {
    const kind = name === "truncated" ? "chain" : "attestation";
    const envelope: Partial<Envelope> = {
      spec_version: "0.2",
      id: `said_${this.#said}`,
      type: `provenance.${kind}.${name}`,
      source,
      created_at: new Date(this.#now()).toISOString(),
      ...fields,
      payload,
    };
    return { tenant: this.#scribe.tenant, envelope, wants: "verdict" };
  }

  /** Turns of the world until something is so; looked at now and then. */
  async #until(ms: number, isSo: () => boolean): Promise<void> {
    const end = this.#clock.monotonic() + ms;
    let look = this.#clock.monotonic();
    for (let turns = 0; this.#clock.monotonic() < end; turns += 1) {
      if (this.#clock.monotonic() >= look) {
        if (isSo()) return;
        look = this.#clock.monotonic() + LOOK_EVERY_MS;
      }
      if (!this.#clock.runNext()) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#readLog();
      if (this.#failure !== undefined) throw this.#failure;
      if (turns > TURNS_MAX) throw new Error("the world spins");
    }
    if (!isSo()) throw new Error(`did not come to pass in ${ms} simulated ms: ${this.#why()}`);
  }

  #readLog(): void {
    const stream = this.#server.stream(STREAM);
    while (stream !== undefined && this.#book.lastSeq < stream.lastSeq) {
      const message = stream.get(this.#book.lastSeq + 1);
      if (message === undefined) throw new Error("the log has a hole");
      this.#book.push(message);
    }
  }

  #isAtRest(): boolean {
    if (this.#crowd.waiting.length > 0) return false;
    const { lastSeq, fold } = this.#book;
    const leader = this.#replicas.find(({ isLeader }) => isLeader)?.host?.status();
    if (leader?.isSettled !== true || leader.acked !== lastSeq) return false;
    if (leader.intake !== this.#server.stream(intakeStream("provenance"))?.lastSeq) return false;
    if (!this.#replicas.every(({ host }) => host?.status().position === lastSeq)) return false;
    for (const [domain, last] of Object.entries(this.#scribe.last)) {
      if (fold.noted[domain as Domain] !== last) return false;
      const told = fold.state.logs.get(domain as Domain)?.first ?? 1;
      if (told < (this.#first.get(logStream(domain as Domain)) ?? 1)) return false;
    }
    return (
      this.#definition.decider.owed(fold.state, fold.at, { requests: new Set() }) === undefined
    );
  }

  #why(): string {
    const statuses = this.#replicas.map(({ host, isUp }) => ({ isUp, ...host?.status() }));
    const { lastSeq, fold } = this.#book;
    const { last } = this.#scribe;
    const waiting = this.#crowd.waiting
      .slice(0, 3)
      .map(({ draft, verdicts }) => ({ draft, verdicts }));
    return JSON.stringify({ lastSeq, noted: fold.noted, last, statuses, waiting }, undefined, 1);
  }

  async #verify(): Promise<AttesterLife> {
    const book = this.#book;
    assert.deepEqual(await book.findings(), [], "the checker, at rest");
    const full = describeState(book.fold.state);
    for (const { instance, state, host } of this.#replicas) {
      assert.ok(state, `${instance} has no state`);
      assert.deepEqual(
        describeState(state),
        full,
        `${instance} has another state than a full fold`,
      );
      const broken = host?.status().alarms.filter(({ alarm }) => / failed: /.test(alarm));
      assert.deepEqual(broken, [], `${instance} met a broken rule`);
    }
    for (const order of [
      ["interruptions", "beliefs", "tasks"],
      ["beliefs", "tasks", "interruptions"],
    ] as const) {
      const { state } = book.refold(order);
      assert.deepEqual(describeState(state), full, `read in the order ${order}`);
    }
    for (let count = 0; count < CUTS; count += 1) {
      const at = this.#random.whole(0, book.messages.length);
      const { full: whole, resumed } = await book.aroundSnapshot(at);
      assert.ok(whole.equals(resumed), `a snapshot at ${at} and the tail give another state`);
    }
    assertOnce(this.#crowd.sent, book.ownEvents);
    const counted = this.#isForgetful ? 0 : await this.#compareCounts();
    return { lines: book.lines, tally: this.#tally, counted, ...this.#outcome() };
  }

  /** Each count that is told is the one that the bare logs give. */
  async #compareCounts(): Promise<number> {
    let all = 0;
    const context = {
      tenant: this.#scribe.tenant,
      source: "agent:reader",
      now: this.#now(),
      event: async () => undefined,
      signature: async () => undefined,
    };
    for (const [id, count] of this.#book.counts()) {
      const { state } = this.#book.fold;
      const read = this.#definition.reads.attestations;
      const view = (await read?.(state, { event_id: id }, context)) as JsonObject;
      assert.equal(view.attestation_count, count, `attestations of ${id}`);
      all += count;
    }
    return all;
  }

  #outcome() {
    const { entries, ownEvents } = this.#book;
    const ofType = (type: string): Envelope[] => ownEvents.filter((event) => event.type === type);
    const told = ofType("provenance.chain.truncated").filter(
      ({ source }) => source === this.#definition.service,
    );
    for (const { id, created_at: at } of told) assert.ok(Date.parse(at) >= T0, `${id} of ${at}`);
    assert.equal(new Set(told.map(({ causation_id: of }) => of)).size, told.length, "told once");
    const owed = entries.filter(({ cause }) => "owed" in cause).map(({ seq }) => seq);
    return {
      attested: ofType("provenance.attestation.added").length,
      revoked: ofType("provenance.attestation.revoked").length,
      waited: entries.filter(({ kind }) => kind === "begun").length,
      neverSeen: entries.filter(
        (entry) =>
          entry.kind === "event" &&
          entry.envelope.type === "event.rejected" &&
          owed.includes(entry.seq),
      ).length,
      truncated: told.length,
    };
  }
}

/** What was acknowledged is in the log once, or refused at the end of its wait; what was refused is not. */
function assertOnce(sent: readonly Sent[], events: readonly Envelope[]): void {
  for (const { draft, verdicts } of sent) {
    const id = String(draft.envelope.id);
    const times = events.filter((event) => event.id === id).length;
    const refusals = events.filter(
      ({ type, causation_id: of }) => type === "event.rejected" && of === id,
    ).length;
    assert.ok(times + Math.min(refusals, 1) >= 1, `${id} is nowhere`);
    assert.ok(times <= 1, `${id} is there ${times} times`);
    for (const verdict of verdicts) {
      if (isRetryable(verdict) || verdict.type === "event.acknowledged") continue;
      assert.equal(times, 0, `${id} was refused and is there`);
    }
  }
}
