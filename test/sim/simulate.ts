/**
 * One simulated life of the coordinator: replicas, agents and an observer on one memory server, faults
 * for a while, then none; at rest everything that was promised must be true (architecture, section 8).
 */
import { type Bus, MemoryServer } from "@harmovela/bus";
import {
  createCoordinator,
  DEFAULT_TASK_SETTINGS,
  type TaskState,
} from "@harmovela/delegation-coordinator";
import type { Envelope } from "@harmovela/envelope";
import { FakeClock, SimRandom } from "@harmovela/testkit";
import { Chaos, emptyTally, type Tally } from "./chaos.ts";
import { Crowd, type Sent } from "./crowd.ts";
import { DealingTraffic } from "./dealing-traffic.ts";
import { Interruptions } from "./interruptions.ts";
import { INTAKE, INTRUDER, Oracle, STREAM } from "./oracle.ts";
import { Questions } from "./questions.ts";
import { Replica } from "./replica.ts";
import { assertSnapshots } from "./snapshots.ts";
import { SIM_TOKEN_KEYS } from "./token-keys.ts";
import { Traffic } from "./traffic.ts";
import { assertAtRest, assertVerdict } from "./verify.ts";
import { View } from "./view.ts";

/** Broker time at the start. */
const T0 = Date.UTC(2026, 10, 30, 10);
/** Simulated time within which everything must have come to rest after the last fault. */
const REST_MS_MAX = 600_000;
/** The first epoch may be an append of unknown fate: it is asked after for a while. */
const FIRST_LEADER_MS_MAX = 30_000;
/** In every so many lives what is over is forgotten within the life, and ids come back. */
const FORGETFUL_EVERY = 5;
const FORGETFUL_MS = 150;
/** In every so many lives tasks are interrupted. */
const INTERRUPTED_EVERY = 3;
const INTERRUPTION_CHANCE = 0.4;
const READ_CHANCE = 0.2;
const LOOK_EVERY_MS = 250;
/** More turns than any life takes: something spins. */
const TURNS_MAX = 3_000_000;

export interface Life {
  /** The log, one line for each stored message. */
  lines: readonly string[];
  tally: Tally;
  messages: number;
  turns: number;
}

/** Lives one life; throws at the first promise that is broken. */
export async function simulate(seed: number): Promise<Life> {
  return new World(seed).live();
}

class World {
  readonly #clock = new FakeClock();
  readonly #server: MemoryServer;
  readonly #oracle: Oracle;
  readonly #view = new View();
  readonly #tally = emptyTally();
  readonly #replicas: Replica<TaskState>[] = [];
  readonly #agents: Bus & { disconnected(how: "lost"): void; reconnected(): void };
  readonly #crowd: Crowd;
  readonly #traffic: Traffic;
  readonly #dealing: DealingTraffic;
  readonly #interruptions: Interruptions;
  readonly #isInterrupted: boolean;
  readonly #questions: Questions;
  readonly #chaos: Chaos;
  readonly #script: SimRandom;
  readonly #size: number;
  readonly #isForgetful: boolean;
  /** Messages of tasks. */
  #said = 0;
  #brokerStepMs = 0;
  #brokerStepMsMax = 0;
  #failure: unknown;
  #turns = 0;

  constructor(seed: number) {
    const random = (stream: number): SimRandom => new SimRandom(seed, stream);
    this.#isForgetful = seed % FORGETFUL_EVERY === 2;
    const retention = this.#isForgetful ? { retentionMs: FORGETFUL_MS } : {};
    const settings = { ...DEFAULT_TASK_SETTINGS, ...retention };
    this.#isInterrupted = seed % INTERRUPTED_EVERY === 1;
    this.#script = random(1);
    this.#size = this.#script.pick([30, 60, 100, 160]);
    this.#server = new MemoryServer({
      clock: this.#clock,
      now: () => this.#brokerNow(),
    });
    this.#interruptions = new Interruptions({
      random: random(6),
      view: this.#view,
      bus: this.#server.connect({ name: "interruption manager" }),
      now: () => this.#brokerNow(),
      send: (draft) => this.#crowd.send(draft),
      speaksIn: (...about) => this.#dealing.speaksIn(...about),
    });
    this.#oracle = new Oracle(settings, this.#isInterrupted ? this.#interruptions : undefined);
    const replicas = this.#script.whole(2, 3);
    const ofReplicas = random(2);
    for (let index = 0; index < replicas; index += 1) {
      this.#replicas.push(
        new Replica({
          name: `replica-${index}`,
          server: this.#server,
          clock: this.#clock,
          random: ofReplicas,
          definition: createCoordinator(settings),
          options: { tokens: SIM_TOKEN_KEYS },
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
    this.#agents = this.#server.connect({ name: "agents" });
    this.#crowd = new Crowd({
      agents: this.#agents,
      observer: this.#server.connect({ name: "observer" }),
      clock: this.#clock,
      view: this.#view,
      onVerdict: (sent, verdict) => this.#onVerdict(sent, verdict),
    });
    this.#questions = new Questions(this.#agents, this.#oracle, {
      readLog: () => this.#readLog(),
      onBroken: (error) => {
        this.#failure ??= error;
      },
    });
    this.#dealing = new DealingTraffic({
      random: random(5),
      view: this.#view,
      clock: this.#clock,
      bus: this.#agents,
      // What has ended may be forgotten within the life, and with it what its key stands for.
      hasKeys: !this.#isForgetful,
      now: () => this.#brokerNow(),
      askToken: (offer, ttlMs, got) => this.#questions.askToken(offer, ttlMs, got),
      send: (draft) => this.#crowd.send(draft),
    });
    const { speaksIn } = this.#dealing;
    this.#traffic = new Traffic(random(3), this.#view, { reuses: this.#isForgetful, speaksIn });
    this.#chaos = new Chaos({
      domain: "tasks",
      random: random(4),
      clock: this.#clock,
      server: this.#server,
      replicas: this.#replicas,
      oracle: this.#oracle,
      tally: this.#tally,
      stepBrokerClock: (ms) => {
        this.#brokerStepMs += ms;
        this.#brokerStepMsMax = Math.max(this.#brokerStepMsMax, this.#brokerStepMs);
      },
      restartServer: () => this.#restartServer(),
      appendForeign: () => this.#appendForeign(),
    });
  }

  async live(): Promise<Life> {
    for (const replica of this.#replicas) replica.start();
    await this.#until(FIRST_LEADER_MS_MAX, () =>
      this.#replicas.some((replica) => replica.isLeader),
    );
    this.#chaos.start();
    this.#speak();
    await this.#until(REST_MS_MAX, () => this.#said >= this.#size);
    this.#chaos.heal();
    this.#dealing.fallSilent();
    if (this.#isInterrupted) await this.#seeAll();
    // A displaced leader that has nothing to write must find out by itself.
    await this.#until(REST_MS_MAX, () => this.#isAtRest());
    assertAtRest({
      oracle: this.#oracle,
      crowd: this.#crowd,
      replicas: this.#replicas,
      isStillAsked: (seq) => this.#server.stream(INTAKE)?.get(seq) !== undefined,
    });
    await assertSnapshots(this.#oracle, this.#script);
    const { lines } = this.#oracle;
    this.#count();
    const messages = this.#crowd.sent.length;
    return { lines, tally: this.#tally, messages, turns: this.#turns };
  }

  /** Something is logged after the last interruption, so that every fold has seen all of them. */
  async #seeAll(): Promise<void> {
    await this.#until(REST_MS_MAX, () => this.#crowd.waiting.length === 0);
    const [tenant = ""] = this.#traffic.tenants;
    const about = { spec_version: "0.2", created_at: "2026-11-30T10:00:00Z", payload: {} } as const;
    const envelope = { ...about, id: "evt_last", type: "task.submitted", source: "agent:last" };
    this.#crowd.send({ tenant, envelope: { ...envelope, task_id: "last" }, wants: "verdict" });
  }

  #count(): void {
    const { stops, resumptions } = this.#oracle.stops;
    Object.assign(this.#tally, { tasksStopped: stops, tasksResumed: resumptions });
    Object.assign(this.#tally, { endsAskedFor: this.#oracle.endsAskedFor });
    const { reused, delegationsHandedOff, tasksOrphaned, windowsEnded, sessions } = this.#oracle;
    const counted = { reused, delegationsHandedOff, tasksOrphaned, windowsEnded };
    Object.assign(this.#tally, counted, { sessionsLost: sessions.lost });
  }

  #brokerNow(): number {
    return T0 + this.#brokerStepMs + Math.floor(this.#clock.monotonic());
  }

  #speak(): void {
    for (const draft of this.#traffic.next()) {
      this.#said += 1;
      this.#crowd.send(draft);
    }
    const dealing = this.#dealing.next(this.#traffic.tenants);
    if (dealing !== undefined) this.#crowd.send(dealing);
    if (this.#isInterrupted && this.#script.chance(INTERRUPTION_CHANCE)) this.#interruptions.next();
    if (this.#said >= this.#size) return;
    this.#clock.after(this.#script.whole(0, this.#script.pick([5, 50, 600])), () => this.#speak());
  }

  /** Turns of the world until something is so; looked at now and then. */
  async #until(ms: number, isSo: () => boolean): Promise<void> {
    const end = this.#clock.monotonic() + ms;
    let look = this.#clock.monotonic();
    while (this.#clock.monotonic() < end) {
      if (this.#clock.monotonic() >= look) {
        if (isSo()) return;
        look = this.#clock.monotonic() + LOOK_EVERY_MS;
      }
      if (!this.#clock.runNext()) break;
      // All that follows from it without further time happens before the next turn.
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#readLog();
      if (this.#failure !== undefined) throw this.#failure;
      this.#turns += 1;
      if (this.#turns > TURNS_MAX) throw new Error("the world spins");
    }
    if (!isSo()) throw new Error(`did not come to pass in ${ms} simulated ms: ${this.#why()}`);
  }

  #readLog(): void {
    try {
      this.#readIntake();
      const stream = this.#server.stream(STREAM);
      while (stream !== undefined && this.#oracle.lastSeq < stream.lastSeq) {
        const message = stream.get(this.#oracle.lastSeq + 1);
        if (message === undefined) throw new Error("the log has a hole");
        this.#oracle.push(message);
      }
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }

  #readIntake(): void {
    const { intake } = this.#oracle;
    const stream = this.#server.stream(INTAKE);
    const reached = T0 + this.#brokerStepMsMax + Math.floor(this.#clock.monotonic());
    while (stream !== undefined && intake.lastSeq < stream.lastSeq) {
      const message = stream.get(intake.lastSeq + 1);
      if (message === undefined) throw new Error("the intake was trimmed unread");
      intake.push(message, reached);
    }
  }

  #onVerdict(sent: Sent, verdict: Envelope): void {
    this.#readLog();
    try {
      assertVerdict(this.#oracle, sent, verdict);
    } catch (error) {
      this.#failure ??= error;
    }
    // What has ended may be forgotten before the question arrives.
    const isAsked = this.#script.chance(READ_CHANCE) && !this.#isForgetful;
    if (isAsked) this.#questions.askTask(sent, verdict);
  }

  #isAtRest(): boolean {
    if (this.#crowd.waiting.length > 0 || this.#oracle.sessions.hasWatched) return false;
    const { lastSeq, fold } = this.#oracle;
    const isFolded = this.#replicas.every(({ host }) => host?.status().position === lastSeq);
    const leader = this.#replicas.find((replica) => replica.isLeader)?.host?.status();
    if (!isFolded || leader?.isSettled !== true || leader.acked !== lastSeq) return false;
    if (leader.intake !== this.#server.stream(INTAKE)?.lastSeq) return false;
    return this.#oracle.owed(fold.at) === undefined;
  }

  #why(): string {
    const statuses = this.#replicas.map(({ host, isUp }) => ({ isUp, ...host?.status() }));
    const waiting = this.#crowd.waiting.slice(0, 5).map(({ draft, attempts, verdicts }) => ({
      draft,
      attempts,
      verdicts,
    }));
    return JSON.stringify({ lastSeq: this.#oracle.lastSeq, statuses, waiting }, undefined, 1);
  }

  /** The observer keeps its connection: what it would miss without one nobody promises. */
  #restartServer(): void {
    for (const replica of this.#replicas) replica.cut("lost");
    this.#agents.disconnected("lost");
    for (const replica of this.#replicas) replica.mend();
    this.#agents.reconnected();
  }

  /** Somebody with the right to append who is no leader. */
  #appendForeign(): void {
    const envelope = { id: "evt_foreign", type: "task.completed", source: "agent:x", payload: {} };
    const data = new TextEncoder().encode(JSON.stringify(envelope));
    this.#agents.publish(INTRUDER, {}, data);
  }
}
