/** What goes wrong, and when: each seed has its own mix of faults and its own rates. */
import { type ArrivalFault, intakeStream, logStream, type MemoryServer } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { FakeClock, SimRandom } from "@harmovela/testkit";
import type { Replica } from "./replica.ts";

/** What a simulation must have gone through, all seeds together. */
export interface Tally {
  crashes: number;
  crashesInCascade: number;
  appendsOfUnknownFate: number;
  appendsRefused: number;
  acksDelayed: number;
  displacedAppends: number;
  intakesTrimmed: number;
  messagesTrimmed: number;
  pauses: number;
  partitions: number;
  stalls: number;
  leasesTaken: number;
  clockSteps: number;
  serverRestarts: number;
  foreignEntries: number;
  snapshotStarts: number;
  /** Ids of tasks that came back after they had been forgotten. */
  reused: number;
  delegationsHandedOff: number;
  sessionsLost: number;
  /** Tasks that failed with the session that had them. */
  tasksOrphaned: number;
  /** Commands and queries whose window ended without a word of their target. */
  windowsEnded: number;
  /** Of interrupted tasks. */
  tasksStopped: number;
  tasksResumed: number;
  endsAskedFor: number;
}

export function emptyTally(): Tally {
  return {
    crashes: 0,
    crashesInCascade: 0,
    appendsOfUnknownFate: 0,
    appendsRefused: 0,
    acksDelayed: 0,
    displacedAppends: 0,
    intakesTrimmed: 0,
    messagesTrimmed: 0,
    pauses: 0,
    partitions: 0,
    stalls: 0,
    leasesTaken: 0,
    clockSteps: 0,
    serverRestarts: 0,
    foreignEntries: 0,
    snapshotStarts: 0,
    reused: 0,
    delegationsHandedOff: 0,
    sessionsLost: 0,
    tasksOrphaned: 0,
    windowsEnded: 0,
    tasksStopped: 0,
    tasksResumed: 0,
    endsAskedFor: 0,
  };
}

const WEIGHTS = {
  crash: 4,
  crashAtAppend: 4,
  pause: 3,
  partition: 2,
  stall: 3,
  takeLease: 3,
  badAcks: 4,
  refuse: 2,
  trim: 3,
  clockStep: 2,
  serverRestart: 1,
  foreign: 1,
} as const;

/** A replica, whatever it runs. */
export type Victim = Pick<
  Replica<unknown>,
  | "isUp"
  | "isPaused"
  | "isLeader"
  | "instance"
  | "host"
  | "start"
  | "crash"
  | "pause"
  | "resume"
  | "cut"
  | "mend"
  | "stall"
  | "unstall"
>;

/** What is known of the log under test. */
export interface Watched {
  readonly leader: string;
  /** Something goes on in which a crash hurts most. */
  readonly isInCascade: boolean;
  readonly lastSeq: number;
}

export interface ChaosParts {
  domain: Domain;
  random: SimRandom;
  clock: FakeClock;
  server: MemoryServer;
  replicas: readonly Victim[];
  oracle: Watched;
  tally: Tally;
  stepBrokerClock(ms: number): void;
  restartServer(): void;
  appendForeign(): void;
}

/** Chances of what happens to one message on its arrival, while acknowledgements go bad. */
interface Arrivals {
  lost: number;
  unanswered: number;
  late: number;
}

const GOOD: Arrivals = { lost: 0, unanswered: 0, late: 0 };

export class Chaos {
  readonly #parts: ChaosParts;
  readonly #stream: string;
  readonly #weights: Record<keyof typeof WEIGHTS, number>;
  readonly #pauseMs: number;
  #isOver = false;
  #arrivals = GOOD;
  #isRefusing = false;
  /** Appends left until the leader dies. */
  #fuse = 0;
  #wasInCascade = false;

  constructor(parts: ChaosParts) {
    const { random } = parts;
    this.#parts = parts;
    this.#stream = logStream(parts.domain);
    this.#pauseMs = random.pick([100, 400, 1_500, 5_000]);
    this.#weights = { ...WEIGHTS };
    for (const name of Object.keys(WEIGHTS) as (keyof typeof WEIGHTS)[]) {
      this.#weights[name] *= random.pick([0, 1, 1, 4]);
    }
    // Never nothing: every seed has something to survive.
    this.#weights.crashAtAppend += 0.1;
    parts.server.faults.onArrival = ({ stream, isChained }) => {
      // What is observed is written by a hand that knows what it has written.
      const isLog = stream.startsWith("HV_LOG_");
      const isSpared = isLog && (stream !== this.#stream || !isChained);
      return isSpared ? undefined : this.#onArrival(stream);
    };
  }

  start(): void {
    const { clock, random } = this.#parts;
    clock.after(random.whole(1, this.#pauseMs * 2), () => {
      if (this.#isOver) return;
      this.#strike();
      this.start();
    });
  }

  /** Everything works again. */
  heal(): void {
    this.#isOver = true;
    this.#arrivals = GOOD;
    this.#isRefusing = false;
    this.#fuse = 0;
    for (const replica of this.#parts.replicas) {
      replica.resume();
      replica.mend();
      replica.unstall();
      replica.start();
    }
  }

  /** A take-over is when silence hurts most. */
  onLease(replica: Victim): void {
    const { random, tally, clock } = this.#parts;
    if (this.#isOver || !random.chance(0.1)) return;
    clock.after(random.whole(0, 12), () => {
      if (this.#isOver) return;
      tally.partitions += 1;
      replica.cut(random.chance(0.5) ? "delivered" : "lost");
      this.#later(9_000, () => replica.mend());
    });
  }

  /** Called at each append that a replica is about to make. */
  onAppend(replica: Victim, subject: string): void {
    const { oracle, tally, random } = this.#parts;
    const isEpoch = subject.endsWith(`.ctl.${this.#parts.domain}.epoch`);
    if (!isEpoch && oracle.leader !== replica.instance) tally.displacedAppends += 1;
    if (!this.#isOver && oracle.isInCascade && !this.#wasInCascade && random.chance(0.2)) {
      this.#fuse = random.whole(1, 12);
    }
    this.#wasInCascade = oracle.isInCascade;
    if (this.#fuse === 0) return;
    this.#fuse -= 1;
    if (this.#fuse === 0) this.#crash(replica);
  }

  #onArrival(stream: string): ArrivalFault | undefined {
    const { random, tally } = this.#parts;
    const isLog = stream === this.#stream;
    if (this.#isRefusing && isLog) {
      tally.appendsRefused += 1;
      return { kind: "refused", apiCode: 10_077, description: "cannot store" };
    }
    if (random.chance(this.#arrivals.lost)) {
      if (isLog) tally.appendsOfUnknownFate += 1;
      return { kind: "lost" };
    }
    if (random.chance(this.#arrivals.unanswered)) {
      if (isLog) tally.appendsOfUnknownFate += 1;
      return { kind: "unanswered" };
    }
    if (!random.chance(this.#arrivals.late)) return undefined;
    if (isLog) tally.acksDelayed += 1;
    return { kind: "late", ms: random.whole(1, random.pick([10, 200, 6_000])) };
  }

  /** Most faults aim at the leader. */
  #victim(): Victim | undefined {
    const { replicas, random } = this.#parts;
    const leader = replicas.find((replica) => replica.isLeader && !replica.isPaused);
    return leader !== undefined && random.chance(0.75) ? leader : random.pick(replicas);
  }

  #crash(replica: Victim | undefined): void {
    const { oracle, tally, random, clock } = this.#parts;
    if (replica?.isUp !== true) return;
    tally.crashes += 1;
    if (replica.isLeader && oracle.isInCascade) tally.crashesInCascade += 1;
    replica.crash(random.chance(0.7) ? "delivered" : "lost");
    clock.after(random.whole(1, random.pick([20, 500, 8_000])), () => replica.start());
  }

  #later(ms: number, fn: () => void): void {
    this.#parts.clock.after(this.#parts.random.whole(1, ms), () => {
      if (!this.#isOver) fn();
    });
  }

  #strike(): void {
    const { random, tally, server, oracle } = this.#parts;
    const victim = this.#victim();
    switch (random.weighted(this.#weights)) {
      case "crash":
        this.#crash(victim);
        return;
      case "crashAtAppend":
        this.#fuse = random.whole(1, random.pick([2, 10, 40]));
        return;
      case "pause":
        tally.pauses += 1;
        victim?.pause();
        this.#later(random.pick([100, 2_000, 9_000]), () => victim?.resume());
        return;
      case "partition":
        tally.partitions += 1;
        victim?.cut(random.chance(0.5) ? "delivered" : "lost");
        this.#later(random.pick([50, 1_000, 6_000]), () => victim?.mend());
        return;
      case "stall":
        tally.stalls += 1;
        victim?.stall();
        this.#later(random.pick([50, 1_000, 9_000]), () => victim?.unstall());
        return;
      case "takeLease":
        tally.leasesTaken += 1;
        server.faults.displace(this.#parts.domain);
        return;
      case "badAcks": {
        const fraction = (): number => random.fraction() * random.pick([0.01, 0.1, 0.5]);
        this.#arrivals = { lost: fraction(), unanswered: fraction(), late: fraction() };
        this.#later(random.pick([100, 3_000]), () => {
          this.#arrivals = GOOD;
        });
        return;
      }
      case "refuse":
        this.#isRefusing = true;
        this.#later(3_000, () => {
          this.#isRefusing = false;
        });
        return;
      case "trim":
        this.#trim();
        return;
      case "clockStep":
        tally.clockSteps += 1;
        this.#parts.stepBrokerClock(random.whole(-2_000, random.pick([10, 2_000, 600_000])));
        return;
      case "serverRestart":
        tally.serverRestarts += 1;
        this.#parts.restartServer();
        return;
      case "foreign":
        if (oracle.lastSeq === 0) return;
        tally.foreignEntries += 1;
        this.#parts.appendForeign();
        return;
    }
  }

  /** The intake loses messages that nobody has judged, when there are any. */
  #trim(): void {
    const { server, random, replicas, tally } = this.#parts;
    const name = intakeStream(this.#parts.domain);
    const state = server.stream(name)?.state();
    if (state === undefined || state.messages === 0) return;
    const judged = Math.max(...replicas.map(({ host }) => host?.status().intake ?? 0));
    const firstSeq = random.chance(0.5)
      ? state.lastSeq + 1
      : random.whole(state.firstSeq, state.lastSeq + 1);
    const unjudged = firstSeq - 1 - judged;
    if (unjudged > 0) {
      tally.intakesTrimmed += 1;
      tally.messagesTrimmed += unjudged;
    }
    server.faults.trim(name, firstSeq);
  }
}
