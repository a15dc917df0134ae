/** Contradictions between sources: real ones only, each said once (spec 6.1). */
import { type DomainEvent, payloadField, payloadText } from "../domain-event.ts";
import { isObject } from "../record.ts";
import { type Assertion, textOf } from "./assertion.ts";
import type { BeliefContext } from "./context.ts";
import type { Ledger } from "./ledger.ts";

/** A time during which a source says so. */
interface Span {
  from: number;
  end: number;
  value: string;
}

/** What has been said about a contradiction that still stands. */
interface Told {
  /** By signature, what each listed source claimed. */
  readonly conflicts: Map<string, ReadonlyMap<string, string | undefined>>;
  /** Ids of the events that say it. */
  readonly ids: Set<string>;
}

/** Values above this are perhaps shown cut: derived events are bounded (architecture, section 2). */
const WHOLE_CHARS = 512;

export class ConflictRules {
  readonly #context: BeliefContext;
  /** By ledger and key. */
  readonly #told = new Map<Ledger, Map<string, Told>>();
  /** Up to which entry a key's claims were settled by a revision. */
  readonly #revised = new Map<Ledger, Map<string, number>>();

  constructor(context: BeliefContext) {
    this.#context = context;
  }

  /** A contradiction that is over may come back, and is a new one then. */
  settle(ledger: Ledger, key: string): void {
    const told = this.#told.get(ledger);
    const before = told?.get(key);
    if (before === undefined) return;
    const claims = ledger.claimsOn(key);
    for (const [signature, said] of before.conflicts) {
      const stands = [...said].every(([source, value]) => {
        const claim = claims.get(source);
        return claim?.standing !== "withdrawn" && claim?.value === value;
      });
      if (!stands) before.conflicts.delete(signature);
    }
    if (!contradict(permitted([...claims.values()]))) told?.delete(key);
  }

  /** With other windows other claims overlap. */
  review(ledger: Ledger, key: string): void {
    this.#told.get(ledger)?.get(key)?.conflicts.clear();
    this.settle(ledger, key);
  }

  /** A `belief.revised` settles what it names: the conflict, or a claim of it. */
  revise({ envelope, frame }: DomainEvent, ledger: Ledger): void {
    const { causation_id: cause, evidence_chain: chain = [] } = envelope;
    const named = new Set([cause, payloadText(envelope, "subject"), ...chain.map(({ id }) => id)]);
    const told = this.#told.get(ledger) ?? new Map<string, Told>();
    for (const name of named) {
      if (name === undefined) continue;
      const keys = new Set([name, ledger.assertions.get(name)?.key]);
      for (const [key, { ids }] of told) if (ids.has(name)) keys.add(key);
      for (const key of keys) {
        if (key === undefined || ledger.claimsOn(key).size === 0) continue;
        told.delete(key);
        entry(this.#revised, ledger).set(key, frame.seq);
      }
    }
  }

  /** A `belief.conflict.detected` of the service. */
  detect({ envelope }: DomainEvent, ledger: Ledger): void {
    const { sink, isLenient } = this.#context;
    if (envelope.belief_status !== "contradicted") {
      sink.add("conflict-fields", `belief_status is ${String(envelope.belief_status)}`);
    }
    const subject = payloadText(envelope, "subject") ?? "";
    const listed = payloadField(envelope, "claims");
    if (!Array.isArray(listed)) return;
    const claims = ledger.claimsOn(subject);
    const fault = faultOf(listed, claims);
    if (fault !== undefined && !isLenient) sink.add("conflict-claims", `${subject}: ${fault}`);
    const told = entry(this.#told, ledger);
    const before = told.get(subject) ?? { conflicts: new Map(), ids: new Set() };
    told.set(subject, before);
    const said = new Map(sourcesOf(listed).map((source) => [source, claims.get(source)?.value]));
    const signature = JSON.stringify([...said].sort());
    if (before.conflicts.has(signature)) {
      sink.add("conflict-twice", `the same conflict about ${subject} has been detected before`);
    }
    before.conflicts.set(signature, said);
    before.ids.add(envelope.id);
  }

  /** Keys whose claims contradict each other, and nobody has said so; with the newest of these claims. */
  untold(ledger: Ledger): { key: string; claim: Assertion }[] {
    if (ledger.isExcused) return [];
    const untold: { key: string; claim: Assertion }[] = [];
    const told = this.#told.get(ledger);
    for (const key of ledger.keys()) {
      if (told?.has(key)) continue;
      const settled = this.#revised.get(ledger)?.get(key) ?? 0;
      const claims = [...ledger.claimsOn(key).values()].filter(
        ({ standing, seq, type }) =>
          standing === "live" && seq > settled && type !== "belief.revised",
      );
      const claim = claims.reduce<Assertion | undefined>(
        (newest, other) => (newest !== undefined && newest.seq > other.seq ? newest : other),
        undefined,
      );
      if (claim !== undefined && contradict(demanded(claims))) untold.push({ key, claim });
    }
    return untold;
  }
}

function faultOf(listed: readonly unknown[], claims: ReadonlyMap<string, Assertion>) {
  const present = permitted([...claims.values()]);
  for (const each of listed) {
    const { source, value, confidence } = isObject(each) ? each : {};
    const claim = claims.get(String(source));
    if (claim === undefined || claim.standing === "withdrawn") return `${source} claims nothing`;
    const isWhole = (claim.value?.length ?? 0) <= WHOLE_CHARS;
    if (isWhole && value !== undefined && textOf(value) !== claim.value) {
      return `${source} does not claim ${JSON.stringify(value).slice(0, 80)}`;
    }
    if (confidence !== undefined && confidence !== claim.confidence) {
      return `${source} is not ${String(confidence)} sure`;
    }
    const own = permitted([claim]);
    if (!own.some((span) => present.some((other) => overlap(span, other)))) {
      return `nobody contradicts ${source}`;
    }
  }
  return new Set(sourcesOf(listed)).size < listed.length ? "a source is listed twice" : undefined;
}

function sourcesOf(listed: readonly unknown[]): string[] {
  return listed.map((each) => String(isObject(each) ? each.source : ""));
}

/** The validity of each claim that is not withdrawn, whichever of its ends is right. */
function permitted(claims: readonly Assertion[]): Span[] {
  return claims.flatMap(({ standing, value, window: { from, end, others } }) =>
    standing === "withdrawn" || value === undefined
      ? []
      : [{ from, end: Math.max(end, ...others), value }],
  );
}

/** The time during which each claim was both known and valid. */
function demanded(claims: readonly Assertion[]): Span[] {
  return claims.flatMap(({ value, at, window: { from, end, others } }) =>
    value === undefined || others.size > 0 ? [] : [{ from: Math.max(from, at), end, value }],
  );
}

const overlap = (one: Span, other: Span): boolean =>
  one.value !== other.value && one.from < other.end && other.from < one.end;

/** Whether any two overlap with different values; O(n log n), because a key may have many sources. */
function contradict(spans: readonly Span[]): boolean {
  const sorted = spans.filter(({ from, end }) => from < end).sort((a, b) => a.from - b.from);
  /** The one that lasts longest so far, and the one of another value that does. */
  let longest: Span | undefined;
  let second: Span | undefined;
  for (const span of sorted) {
    const rival = longest?.value === span.value ? second : longest;
    if (rival !== undefined && rival.end > span.from) return true;
    if (longest === undefined || span.end > longest.end) {
      if (longest !== undefined && longest.value !== span.value) second = longest;
      longest = span;
    } else if (span.value !== longest.value && span.end > (second?.end ?? 0)) second = span;
  }
  return false;
}

function entry<T>(map: Map<Ledger, Map<string, T>>, ledger: Ledger): Map<string, T> {
  let found = map.get(ledger);
  if (found === undefined) {
    found = new Map();
    map.set(ledger, found);
  }
  return found;
}
