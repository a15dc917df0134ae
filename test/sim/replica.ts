/** One replica of a service: a process that can be killed, paused, cut off, and started again. */
import type {
  Appender,
  AppenderOptions,
  MemoryBus,
  MemoryServer,
  StreamState,
} from "@harmovela/bus";
import type { Decider } from "@harmovela/envelope";
import { toHarmovelaError } from "@harmovela/failure";
import {
  type Host,
  type HostOptions,
  instantPacking,
  openHost,
  type ServiceDefinition,
} from "@harmovela/host";
import type { FakeClock, ProcessClock, SimRandom } from "@harmovela/testkit";
import pino from "pino";
import { LateReader } from "./late-reader.ts";

const LEASE_TTL_MS = 1_500;
const RETENTION_MS = 30 * 86_400_000;
/** A process that ended is started again after this long. */
const SUPERVISOR_MS = 500;
const logger = pino({ level: "silent" });

export interface ReplicaParts<State> {
  name: string;
  server: MemoryServer;
  clock: FakeClock;
  random: SimRandom;
  /** What it runs, and how. */
  definition: ServiceDefinition<State>;
  options?: Partial<HostOptions<State>>;
  /** What a look at a stream finds, where that is not what is stored. */
  onLook?(stream: string, state: StreamState): StreamState;
  /** A replica has just taken the lease. */
  onLease(replica: Replica<State>): void;
  /** A replica is about to append. */
  onAppend(replica: Replica<State>, subject: string): void;
  /** It has gone on from a snapshot. */
  onRestored(): void;
  /** It stopped by itself, which nothing here may make it do. */
  onStopped(replica: Replica<State>, error: unknown): void;
}

interface Incarnation<State> {
  instance: string;
  process: ProcessClock;
  writer: MemoryBus;
  answerer: MemoryBus;
  host: Host | undefined;
  /** What the host has folded. */
  state: State | undefined;
}

export class Replica<State> {
  readonly #parts: ReplicaParts<State>;
  #count = 0;
  #now: Incarnation<State> | undefined;

  constructor(parts: ReplicaParts<State>) {
    this.#parts = parts;
  }

  get isUp(): boolean {
    return this.#now !== undefined;
  }

  get isPaused(): boolean {
    return this.#now?.process.isPaused === true;
  }

  get instance(): string {
    return this.#now?.instance ?? "";
  }

  get host(): Host | undefined {
    return this.#now?.host;
  }

  get state(): State | undefined {
    return this.#now?.state;
  }

  get isLeader(): boolean {
    return this.#now?.host?.status().role === "leader";
  }

  start(): void {
    if (this.#now !== undefined) return;
    const { name, server, clock, random } = this.#parts;
    this.#count += 1;
    const instance = `${name}.${this.#count}`;
    const lagMs = random.pick([0, 0, 1, 4]);
    const process = clock.openProcess(() => random.whole(0, lagMs));
    const connect = (role: string): MemoryBus => {
      const uplink = clock.openProcess(() => random.whole(0, lagMs));
      return server.connect({ name: `${instance} ${role}`, clock: process, uplink });
    };
    const now: Incarnation<State> = {
      instance,
      process,
      writer: connect("writer"),
      answerer: connect("answerer"),
      host: undefined,
      state: undefined,
    };
    this.#now = now;
    this.#watch(now.writer);
    const openLease = now.writer.openLease.bind(now.writer);
    now.writer.openLease = (options) => {
      const onAcquired = (): void => {
        this.#parts.onLease(this);
        options.onAcquired();
      };
      return openLease({ ...options, onAcquired });
    };
    const lateMs = random.pick([0, 0, 3, 40]);
    const openReader = now.writer.openReader.bind(now.writer);
    now.writer.openReader = (stream, options) =>
      new LateReader(
        (inner) => openReader(stream, inner),
        options,
        process,
        () => random.whole(0, lateMs),
      );
    const { definition, options, onLook } = this.#parts;
    const { snapshots } = definition.decider;
    if (snapshots === undefined) throw new Error("the service takes no snapshots");
    const streamState = now.writer.streamState.bind(now.writer);
    now.writer.streamState = async (stream) => {
      const found = await streamState(stream);
      return found === undefined ? undefined : (onLook?.(stream, found) ?? found);
    };
    const decider: Decider<State> = {
      ...definition.decider,
      snapshots: {
        ...snapshots,
        adopt: (state) => {
          snapshots.adopt?.(state);
          now.state = state;
          this.#parts.onRestored();
        },
      },
      initial: () => {
        const state = definition.decider.initial();
        now.state = state;
        return state;
      },
    };
    const isCurrent = (): boolean => this.#now === now;
    openHost({
      ...definition,
      decider,
      version: "0.1.0",
      instance,
      writer: now.writer,
      answerer: now.answerer,
      clock: process,
      logger,
      replicas: 1,
      retentionMs: RETENTION_MS,
      packing: instantPacking,
      snapshotEntries: random.pick([5, 40, 200]),
      leaseTtlMs: LEASE_TTL_MS,
      replyPrefix: () => "_INBOX.",
      ...options,
    }).then(
      (host) => {
        now.host = host;
        host.done.catch((error: unknown) => {
          if (isCurrent()) this.#parts.onStopped(this, error);
        });
      },
      (error: unknown) => {
        if (!isCurrent()) return;
        // A process that finds no server ends, and its supervisor starts it again.
        this.crash("lost");
        if (toHarmovelaError(error).category !== "dependency") this.#parts.onStopped(this, error);
        else clock.after(SUPERVISOR_MS, () => this.start());
      },
    );
  }

  /** Each append is announced; one that kills the replica is not published any more. */
  #watch(writer: MemoryBus): void {
    const open = writer.openAppender.bind(writer);
    writer.openAppender = (options: AppenderOptions): Appender => {
      const appender = open(options);
      const append = appender.append.bind(appender);
      appender.append = (subject, headers, data) => {
        const incarnation = this.#now;
        this.#parts.onAppend(this, subject);
        const isAlive = this.#now !== undefined && this.#now === incarnation;
        return isAlive ? append(subject, headers, data) : appender.last + 1;
      };
      return appender;
    };
  }

  /** Kill -9. What it had sent may still reach the server. */
  crash(inFlight: "lost" | "delivered"): void {
    const now = this.#now;
    if (now === undefined) return;
    this.#now = undefined;
    now.process.kill();
    now.writer.disconnected(inFlight);
    now.answerer.disconnected(inFlight);
  }

  pause(): void {
    this.#now?.process.pause();
  }

  resume(): void {
    this.#now?.process.resume();
  }

  cut(inFlight: "lost" | "delivered"): void {
    this.#now?.writer.disconnected(inFlight);
    this.#now?.answerer.disconnected(inFlight);
  }

  mend(): void {
    this.#now?.writer.reconnected();
    this.#now?.answerer.reconnected();
  }

  /** Its packets wait on the way, in both directions. */
  stall(): void {
    this.#now?.writer.link.hold();
  }

  unstall(): void {
    this.#now?.writer.link.release();
  }
}
