import type { DomainEvent } from "../domain-event.ts";
import { payloadText } from "../domain-event.ts";
import type { Missing } from "../domain-rules.ts";
import type { FindingSink } from "../finding.ts";
import type { Across } from "./across.ts";
import type { EventBook, SeenEvent } from "./events.ts";

/** Where senders are not proved these may tell of what anybody's conclusions rest on. */
const RUNTIME = /^(?:harness|runtime):/;

/** Evidence that a log no longer holds: told of once for each live assertion that rests on it (spec 8). */
export class Truncations {
  readonly #sink: FindingSink;
  readonly #across: Across;
  readonly #isLenient: boolean;
  /** Assertions that were told of, by tenant. */
  readonly #told = new Map<string, Map<string, { at: number; isOwed: boolean }>>();
  /** Tenants of which something could not be written. */
  readonly #excused = new Set<string>();

  constructor(sink: FindingSink, across: Across, isLenient: boolean) {
    this.#sink = sink;
    this.#across = across;
    this.#isLenient = isLenient;
  }

  told(event: DomainEvent, isOwed: boolean): void {
    const { envelope, frame, tenant } = event;
    const assertion = envelope.causation_id ?? envelope.evidence_chain?.at(-1)?.id;
    const missing = payloadText(envelope, "missing_from");
    if (isOwed && (assertion === undefined || missing === undefined)) {
      this.#sink.add("truncation-fields", `${envelope.id} does not say what of what is missing`);
    }
    if (assertion === undefined) return;
    if (!isOwed) this.#checkParty(event, assertion);
    const told = this.#toldIn(tenant, frame.at);
    if (isOwed && told.get(assertion)?.isOwed) {
      this.#sink.add("truncation-twice", `${assertion} was told of before`);
    }
    told.set(assertion, { at: frame.at, isOwed });
    if (isOwed && missing !== undefined) this.#hold(event, assertion, missing);
  }

  /** It puts conclusions in doubt: of others' nobody tells but who may. */
  #checkParty({ envelope, tenant }: DomainEvent, assertion: string): void {
    const bearer = this.#across.isOn ? this.#across.bookOf(tenant).get(assertion) : undefined;
    if (bearer === undefined || bearer.isAmbiguous || bearer.source === envelope.source) return;
    const { authorities, authenticated } = this.#across.settings;
    if (authorities.includes(envelope.source)) return;
    if (!authenticated && RUNTIME.test(envelope.source)) return;
    this.#sink.add(
      "truncation-party",
      `${envelope.source} tells of ${assertion} of ${bearer.source}`,
    );
  }

  excuse(tenant: string): void {
    this.#excused.add(tenant);
  }

  /** Against what the other logs have shown. */
  #hold({ envelope, tenant }: DomainEvent, assertion: string, missing: string): void {
    if (!this.#across.isOn) return;
    const book = this.#across.bookOf(tenant);
    const bearer = book.get(assertion);
    const isWhole = this.#across.isWhole(tenant);
    const standing = this.#across.standingOf(tenant, assertion);
    if (
      standing === "withdrawn" ||
      standing === "replaced" ||
      (isWhole && standing === undefined)
    ) {
      this.#sink.add("truncation-dead", `${assertion} is no live assertion`);
    }
    // Of two events under one id nobody can say which is meant.
    const isClear = [bearer, book.get(missing)].every((event) => event?.isAmbiguous !== true);
    if (bearer !== undefined && isClear && !bearer.links.includes(missing)) {
      this.#sink.add("truncation-evidence", `${assertion} does not rest on ${missing}`);
    } else if (isWhole && isClear && !this.#isLost(book.get(missing))) {
      this.#sink.add("truncation-lost", `${missing} is where it was`);
    }
    const left = payloadText(envelope, "earliest_available");
    if (this.#isLost(book.get(left)) && left !== assertion) {
      this.#sink.add("truncation-lost", `${left} is called available and is lost`);
    }
  }

  #isLost(event: SeenEvent | undefined): boolean {
    return event !== undefined && this.#across.isLost(event);
  }

  /** Live assertions whose evidence is lost, and of which nobody was told. */
  *missing(): Generator<Missing> {
    if (this.#isLenient) return;
    for (const [tenant, book] of this.#across.books()) {
      if (!this.#across.isWhole(tenant) || this.#excused.has(tenant)) continue;
      for (const event of book.all()) {
        if (this.#told.get(tenant)?.has(event.id) || event.isAmbiguous) continue;
        if (event.domain !== "beliefs") continue;
        if (this.#across.standingOf(tenant, event.id) !== "live") continue;
        const lost = this.#lostOf(book, event);
        if (lost === undefined) continue;
        const { seq, subject } = event;
        const message = `${event.id} rests on ${lost.id}, which is lost, and nobody was told`;
        yield { rule: "truncation-open", seq, subject, message };
      }
    }
  }

  /** What it was sure to be known to rest on. */
  #lostOf(book: EventBook, { id, links, at }: SeenEvent): SeenEvent | undefined {
    const { retentionMs } = this.#across.settings;
    return links
      .filter((link) => link !== id)
      .map((link) => book.get(link))
      .find(
        (event) =>
          event !== undefined &&
          !event.isAmbiguous &&
          event.at + retentionMs > at &&
          this.#isLost(event),
      );
  }

  #toldIn(tenant: string, at: number): Map<string, { at: number; isOwed: boolean }> {
    const told = this.#told.get(tenant) ?? new Map<string, { at: number; isOwed: boolean }>();
    this.#told.set(tenant, told);
    for (const [id, before] of told) {
      if (before.at >= at - 2 * this.#across.settings.retentionMs) break;
      told.delete(id);
    }
    return told;
  }
}
