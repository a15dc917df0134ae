import { metrics } from "@opentelemetry/api";
import { type Late, LateWork } from "./late-work.ts";

const NAMES = [
  "accepted",
  "begun",
  "derived",
  "rejected",
  "late",
  "duplicates",
  "ignored",
  "dropped",
  "verdicts",
  "replies_dropped",
  "reads",
  "requests",
  "obligations_failed",
  "leaderships",
  "recoveries",
  "refolds",
  "snapshots",
  "intake_gaps",
  "alarms",
] as const;

export type CounterName = (typeof NAMES)[number];

/** What a service has done since it started; also exported as OpenTelemetry counters `harmovela.<name>`. */
export class Counters {
  readonly #values = new Map<CounterName, number>(NAMES.map((name) => [name, 0]));
  readonly #instruments;
  readonly #attributes: { domain: string };
  readonly #lateWork = new LateWork();
  #onLateWork: (late: Late) => void = () => {};

  constructor(domain: string) {
    const meter = metrics.getMeter("harmovela");
    this.#attributes = { domain };
    this.#instruments = new Map(
      NAMES.map((name) => [name, meter.createCounter(`harmovela.${name}`)]),
    );
  }

  add(name: CounterName, by = 1): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
    this.#instruments.get(name)?.add(by, this.#attributes);
  }

  /** Work on what has ended was refused; whoever listens is told of each such work once. */
  addLate(late: Late): void {
    this.add("late");
    if (this.#lateWork.goesOn(late)) this.#onLateWork(late);
  }

  onLateWork(fn: (late: Late) => void): void {
    this.#onLateWork = fn;
  }

  get(name: CounterName): number {
    return this.#values.get(name) ?? 0;
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#values);
  }
}
