import type { Domain } from "@harmovela/envelope";
import type { Standing } from "../beliefs/assertion.ts";
import type { DomainEvent } from "../domain-event.ts";
import { EventBook, type SeenEvent } from "./events.ts";
import type { ProvenanceSettings } from "./settings.ts";

/** A log that is read beside that of `provenance`. */
export interface ObservedLog {
  readonly isLenient: boolean;
  /** What is held of an assertion; of the log of `beliefs`. */
  standingOf?(tenant: string, id: string): Standing | undefined;
  /** The profiles in force for an event; of the log of `tasks`. */
  profiles?(event: DomainEvent): readonly string[] | undefined;
}

const OBSERVED: readonly Domain[] = ["tasks", "beliefs", "interruptions"];

/** What the rules between logs know: events of every log, and where each log begins now. */
export class Across {
  readonly settings: ProvenanceSettings;
  readonly #logs: ReadonlyMap<Domain, ObservedLog>;
  readonly #isLenient: boolean;
  readonly #books = new Map<string, EventBook>();
  /** Where each log began when that was last told. */
  readonly #first = new Map<string, number>();
  /** More is remembered than the service keeps: it may have let go of anything. */
  #isPressed = false;

  constructor(
    settings: ProvenanceSettings,
    logs: ReadonlyMap<Domain, ObservedLog>,
    isLenient: boolean,
  ) {
    this.settings = settings;
    this.#logs = logs;
    this.#isLenient = isLenient;
  }

  /** Whether the other logs are read as well; without them nothing is known of what was seen. */
  get isOn(): boolean {
    return OBSERVED.every((domain) => this.#logs.has(domain));
  }

  /** Whether what is not known here is known to nobody. */
  isWhole(tenant: string): boolean {
    const isCut = [...this.#logs.values()].some(({ isLenient }) => isLenient);
    if (!this.isOn || isCut || this.#isLenient || this.#isPressed) return false;
    return !this.bookOf(tenant).isForgetful;
  }

  /** An event that the service surely knows at a time: it may let go of what is old, or when it has too much. */
  knownFor(tenant: string, id: string | undefined, now: number): SeenEvent | undefined {
    const event = this.bookOf(tenant).get(id);
    const isYoung = event !== undefined && event.at + this.settings.retentionMs > now;
    return isYoung && !this.#isPressed ? event : undefined;
  }

  bookOf(tenant: string): EventBook {
    let book = this.#books.get(tenant);
    if (book === undefined) {
      book = new EventBook();
      this.#books.set(tenant, book);
    }
    return book;
  }

  books(): Iterable<[string, EventBook]> {
    return this.#books;
  }

  /** Let go of at the service's leisure; here it is remembered for twice as long. */
  forget(tenant: string, now: number): void {
    const { retentionMs, rememberedMax } = this.settings;
    this.bookOf(tenant).forget(now - 2 * retentionMs);
    let weight = 0;
    for (const book of this.#books.values()) weight += book.weight;
    if (weight > rememberedMax) this.#isPressed = true;
  }

  standingOf(tenant: string, id: string): Standing | undefined {
    return this.#logs.get("beliefs")?.standingOf?.(tenant, id);
  }

  /** The profiles in force for an event of a session; undefined: that log does not say. */
  profilesOf(event: DomainEvent): readonly string[] | undefined {
    const tasks = this.#logs.get("tasks");
    return tasks?.isLenient === false ? tasks.profiles?.(event) : undefined;
  }

  firstOf(domain: string): number {
    return this.#first.get(domain) ?? 1;
  }

  begins(domain: string, first: number): void {
    this.#first.set(domain, first);
  }
}
