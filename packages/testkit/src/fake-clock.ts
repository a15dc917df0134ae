/**
 * Time that moves only when it is told to. Callbacks run one by one, by due time and then in the order
 * in which they were asked for, so that the same calls give the same run.
 *
 * C1 What one process asked for with `soon` runs in that order, whatever its lag.
 * C2 A process that was killed runs nothing more; one that is paused runs what came due when it resumes.
 */
import type { Clock } from "@harmovela/bus";

interface Waiting {
  due: number;
  order: number;
  fn: () => void;
}

export class FakeClock implements Clock {
  readonly #heap: Waiting[] = [];
  #now = 0;
  #order = 0;

  monotonic(): number {
    return this.#now;
  }

  after(ms: number, fn: () => void): () => void {
    const waiting = { due: this.#now + Math.max(0, ms), order: this.#order, fn };
    this.#order += 1;
    push(this.#heap, waiting);
    return () => {
      waiting.fn = nothing;
    };
  }

  soon(fn: () => void): void {
    this.after(0, fn);
  }

  /** Milliseconds until the next callback; undefined when nobody waits. */
  get untilNext(): number | undefined {
    const next = this.#heap[0];
    return next === undefined ? undefined : next.due - this.#now;
  }

  /** Moves to the next callback and runs it; false when nobody waits. */
  runNext(): boolean {
    const next = pop(this.#heap);
    if (next === undefined) return false;
    this.#now = Math.max(this.#now, next.due);
    next.fn();
    return true;
  }

  /** The view of one process. `lagMs` is asked at each `soon`: how long a turn of it takes to come. */
  openProcess(lagMs: () => number = () => 0): ProcessClock {
    return new ProcessClock(this, lagMs);
  }
}

/** More turns than anything that a test waits for takes: something spins. */
const TURNS_MAX = 5_000_000;

/** Lets simulated time pass: all that comes due in it runs, and what follows from that without further time. */
export async function pass(clock: FakeClock, ms: number): Promise<void> {
  let isOver = false;
  clock.after(ms, () => {
    isOver = true;
  });
  while (!isOver) await turn(clock);
}

/** Lets as much simulated time pass as it takes until a promise is settled; what it is settled with. */
export async function settled<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const watched = promise.finally(() => {
    isSettled = true;
  });
  watched.catch(() => {
    // Thrown to whoever awaits it below.
  });
  for (let turns = 0; !isSettled; turns += 1) {
    if (turns > TURNS_MAX) throw new Error(`still pending at ${clock.monotonic()}`);
    await turn(clock);
  }
  return watched;
}

async function turn(clock: FakeClock): Promise<void> {
  clock.runNext();
  await new Promise<void>((resolve) => setImmediate(resolve));
}

export class ProcessClock implements Clock {
  readonly #clock: FakeClock;
  readonly #lagMs: () => number;
  #backlog: (() => void)[] = [];
  #soonDue = 0;
  #state: "running" | "paused" | "killed" = "running";

  constructor(clock: FakeClock, lagMs: () => number) {
    this.#clock = clock;
    this.#lagMs = lagMs;
  }

  get isKilled(): boolean {
    return this.#state === "killed";
  }

  get isPaused(): boolean {
    return this.#state === "paused";
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, fn: () => void): () => void {
    let isCancelled = false;
    const cancel = this.#clock.after(ms, () => {
      this.#run(() => {
        if (!isCancelled) fn();
      });
    });
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** C1. */
  soon(fn: () => void): void {
    const now = this.#clock.monotonic();
    this.#soonDue = Math.max(this.#soonDue, now + Math.max(0, this.#lagMs()));
    this.after(this.#soonDue - now, fn);
  }

  /** C2. */
  #run(fn: () => void): void {
    if (this.#state === "running") fn();
    else if (this.#state === "paused") this.#backlog.push(fn);
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    for (const fn of this.#backlog.splice(0)) this.#clock.after(0, () => this.#run(fn));
  }

  kill(): void {
    this.#state = "killed";
    this.#backlog = [];
  }
}

const nothing = (): void => {
  // Was cancelled.
};

const isBefore = (a: Waiting, b: Waiting): boolean =>
  a.due < b.due || (a.due === b.due && a.order < b.order);

function push(heap: Waiting[], item: Waiting): void {
  let at = heap.length;
  while (at > 0) {
    const parent = heap[(at - 1) >> 1];
    if (parent === undefined || !isBefore(item, parent)) break;
    heap[at] = parent;
    at = (at - 1) >> 1;
  }
  heap[at] = item;
}

function pop(heap: Waiting[]): Waiting | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (last === undefined || first === last) return first;
  let at = 0;
  for (;;) {
    const left = heap[2 * at + 1];
    const right = heap[2 * at + 2];
    const isRight = left !== undefined && right !== undefined && isBefore(right, left);
    const least = isRight ? right : left;
    if (least === undefined || !isBefore(least, last)) break;
    heap[at] = least;
    at = 2 * at + (isRight ? 2 : 1);
  }
  heap[at] = last;
  return first;
}
