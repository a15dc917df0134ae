import { Fifo } from "@harmovela/envelope";
import { type Assertion, isClaim, type Standing } from "./assertion.ts";
import type { Retraction } from "./retraction.ts";

/** What one tenant's agents hold true, as its log says. */
export class Ledger {
  readonly assertions = new Map<string, Assertion>();
  readonly retractions = new Map<string, Retraction>();
  /** Retracted by the id of an event that nobody had logged. */
  readonly retractedIds = new Map<string, ReadonlySet<Retraction>>();
  /** Keys of detected conflicts that nobody has called resolved, by the id of the event. */
  readonly conflicts = new Map<string, string>();
  /** Windows that have expired, by resource and end; `mayRepeat`: something was given this end anew. */
  readonly #expired = new Map<string, { mayRepeat: boolean }>();
  /** Those that an observer has noticed: the service need not say it again. */
  readonly #noticed = new Map<string, number>();
  /** Something the service owed could not be logged: nothing is missed from there on. */
  isExcused = false;
  /** Keys of conflicts that agents have reported. */
  readonly reports = new Map<string, string>();
  readonly #byName = new Map<string, Set<Assertion>>();
  readonly #restingOn = new Map<string, Set<Assertion>>();
  /** By key, then by source: several sources speak of one subject. */
  readonly #claims = new Map<string, Map<string, Assertion>>();
  /** What is over, or was never a claim, by the time since when. */
  readonly #over = new Fifo<{ assertion: Assertion; at: number }>();
  readonly #past = new Fifo<{
    map: Map<string, unknown>;
    key: string;
    value: unknown;
    at: number;
  }>();

  add(assertion: Assertion): void {
    const { id, key, names, grounds, source, at } = assertion;
    this.assertions.set(id, assertion);
    for (const name of names) put(this.#byName, name, assertion);
    for (const ground of grounds) put(this.#restingOn, ground, assertion);
    if (key === undefined || !isClaim(assertion)) {
      this.#over.push({ assertion, at });
      return;
    }
    const claims = this.#claims.get(key) ?? new Map<string, Assertion>();
    this.#claims.set(key, claims);
    const before = claims.get(source);
    if (before !== undefined) follow(assertion, before);
    assertion.lineage.versions.add(assertion);
    if (before !== undefined) this.end(before, "replaced", at);
    claims.set(source, assertion);
  }

  end(assertion: Assertion, standing: Standing, at: number): void {
    if (assertion.standing === "replaced" || assertion.standing === "withdrawn") return;
    assertion.standing = standing;
    if (standing !== "unsure") this.#over.push({ assertion, at });
  }

  named(name: string): ReadonlySet<Assertion> {
    return this.#byName.get(name) ?? new Set();
  }

  restingOn(id: string): ReadonlySet<Assertion> {
    return this.#restingOn.get(id) ?? new Set();
  }

  /** The newest claim of each source on a key, those withdrawn included. */
  claimsOn(key: string): ReadonlyMap<string, Assertion> {
    return this.#claims.get(key) ?? new Map();
  }

  keys(): Iterable<string> {
    return this.#claims.keys();
  }

  /** For as long as the service may remember it. */
  remember<T>(map: Map<string, T>, key: string, value: T, at: number): void {
    map.set(key, value);
    this.#past.push({ map, key, value, at });
  }

  /** Perhaps it rests on this as well (spec 6.1, `replaced_by`). */
  rest(assertion: Assertion, ground: string): void {
    if (assertion.grounds.has(ground)) return;
    assertion.grounds.add(ground);
    assertion.weakGrounds.add(ground);
    put(this.#restingOn, ground, assertion);
  }

  /** Once for each resource and end, however many sources hold until then (spec 6.2). */
  expire({ names }: Assertion, end: number, at: number): void {
    for (const name of names) {
      this.remember(this.#expired, windowKey(name, end), { mayRepeat: false }, at);
    }
  }

  notice({ names, window: { end } }: Assertion, at: number): void {
    for (const name of names) this.remember(this.#noticed, windowKey(name, end), at, at);
  }

  hasExpired({ names }: Assertion, end: number): boolean {
    return names.some((name) => this.#expired.get(windowKey(name, end))?.mayRepeat === false);
  }

  /** Whether somebody has said that the window is over. */
  isKnown({ names, window: { end } }: Assertion): boolean {
    const keys = names.map((name) => windowKey(name, end));
    return keys.some((key) => this.#expired.has(key) || this.#noticed.has(key));
  }

  /** Something was given this end anew: that may be told again. */
  renew({ names }: Assertion, end: number): void {
    for (const name of names) {
      const expired = this.#expired.get(windowKey(name, end));
      if (expired !== undefined) expired.mayRepeat = true;
    }
  }

  /** What was fresh was given an end that was told of before: it must be told again. */
  reopen({ names }: Assertion, end: number): void {
    for (const name of names) this.#expired.delete(windowKey(name, end));
  }

  /** Lets go of what was over before a time. */
  forget(before: number): void {
    for (let oldest = this.#over.peek(); oldest; oldest = this.#over.peek()) {
      if (oldest.at >= before) break;
      this.#over.shift();
      this.#drop(oldest.assertion);
    }
    for (let oldest = this.#past.peek(); oldest; oldest = this.#past.peek()) {
      if (oldest.at >= before) break;
      this.#past.shift();
      if (oldest.map.get(oldest.key) === oldest.value) oldest.map.delete(oldest.key);
    }
  }

  #drop(assertion: Assertion): void {
    const { id, key, names, grounds, source } = assertion;
    assertion.lineage.versions.delete(assertion);
    if (this.assertions.get(id) === assertion) this.assertions.delete(id);
    for (const name of names) take(this.#byName, name, assertion);
    for (const ground of grounds) take(this.#restingOn, ground, assertion);
    if (key === undefined) return;
    const claims = this.#claims.get(key);
    if (claims?.get(source) !== assertion) return;
    claims.delete(source);
    if (claims.size === 0) this.#claims.delete(key);
  }
}

/** The same source says it again: an update without a value keeps it, and a claim that still stands is the same one. */
function follow(assertion: Assertion, before: Assertion): void {
  const keepsValue = assertion.type === "memory.fact.updated" && assertion.value === undefined;
  if (keepsValue && before.standing !== "withdrawn") {
    if (before.standing === "live") assertion.value = before.value;
    else if (before.value !== undefined) assertion.otherValues.add(before.value);
    for (const value of before.otherValues) assertion.otherValues.add(value);
  }
  if (before.standing !== "withdrawn" && !before.isMarked) assertion.lineage = before.lineage;
}

const windowKey = (name: string, end: number): string => `${end} ${name}`;

function put(map: Map<string, Set<Assertion>>, key: string, assertion: Assertion): void {
  const found = map.get(key);
  if (found === undefined) map.set(key, new Set([assertion]));
  else found.add(assertion);
}

function take(map: Map<string, Set<Assertion>>, key: string, assertion: Assertion): void {
  const found = map.get(key);
  if (found?.delete(assertion) && found.size === 0) map.delete(key);
}
