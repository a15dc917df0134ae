import { metrics } from "@opentelemetry/api";

const NAMES = [
  "accepted",
  "begun",
  "derived",
  "rejected",
  "limited",
  "late",
  "duplicates",
  "ignored",
  "dropped",
  "verdicts",
  "replies_dropped",
  "reads",
  "replays",
  "acts",
  "requests",
  "obligations_failed",
  "leaderships",
  "recoveries",
  "refolds",
  "snapshots",
  "intake_gaps",
  "audited",
  "audit_lost",
  "alarms",
] as const;

export type CounterName = (typeof NAMES)[number];

/** What a service has done since it started; also exported as OpenTelemetry counters `harmovela.<name>`. */
export class Counters {
  readonly #values = new Map<CounterName, number>(NAMES.map((name) => [name, 0]));
  readonly #instruments;
  readonly #attributes: { domain: string };

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

  get(name: CounterName): number {
    return this.#values.get(name) ?? 0;
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#values);
  }
}
