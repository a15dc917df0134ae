/**
 * One simulated life of the attester: replicas beside logs that grow and lose their beginnings, agents that
 * attest and revoke, faults for a while, then none; at rest everything that was promised must be true.
 */
import { intakeStream, logStream, MemoryServer } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import {
  type AttesterState,
  createAttester,
  DEFAULT_ATTESTER_SETTINGS,
} from "@harmovela/provenance-attester";
import { FakeClock, SimRandom } from "@harmovela/testkit";
import { Chaos, emptyTally, type Tally } from "./chaos.ts";
import { Crowd } from "./crowd.ts";
import { LineageBook, STREAM } from "./lineage-book.ts";
import { JUDGE, LineageTraffic } from "./lineage-traffic.ts";
import { Replica } from "./replica.ts";
import { Scribe } from "./scribe.ts";
import { type Outcome, verifyAttester } from "./verify-attester.ts";
import { View } from "./view.ts";

const T0 = Date.UTC(2026, 10, 30, 10);
/** Simulated time within which everything must have come to rest after the last fault. */
const REST_MS_MAX = 600_000;
const FIRST_LEADER_MS_MAX = 30_000;
const LOOK_EVERY_MS = 250;
const TURNS_MAX = 3_000_000;
/** In every so many lives so little is remembered that the oldest goes before its time. */
const FORGETFUL_EVERY = 5;

export interface AttesterLife extends Outcome {
  lines: readonly string[];
  tally: Tally;
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
  readonly #traffic: LineageTraffic;
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
    this.#traffic = new LineageTraffic({
      random: random(5),
      scribe: this.#scribe,
      now: () => this.#now(),
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
    const outcome = await verifyAttester({
      book: this.#book,
      replicas: this.#replicas,
      definition: this.#definition,
      tenant: this.#scribe.tenant,
      random: this.#random,
      sent: this.#crowd.sent,
      isForgetful: this.#isForgetful,
      begun: T0,
    });
    return { lines: this.#book.lines, tally: this.#tally, ...outcome };
  }

  #speak(): void {
    const random = this.#random;
    for (let count = random.whole(0, 4); count > 0; count -= 1) this.#scribe.next();
    if (this.#said < this.#size && this.#scribe.said.length > 0) {
      this.#said += 1;
      this.#crowd.send(this.#traffic.next());
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
}
