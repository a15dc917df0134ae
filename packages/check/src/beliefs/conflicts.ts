/** Contradictions between sources: real ones only, each said once (spec 6.1). */
import { type DomainEvent, payloadField, payloadText } from "../domain-event.ts";
import { isObject } from "../record.ts";
import { type Assertion, revisedTo, textOf } from "./assertion.ts";
import type { BeliefContext } from "./context.ts";
import type { Ledger } from "./ledger.ts";

/** A time during which a source says so. */
interface Span {
  source: string;
  from: number;
  end: number;
  value: string;
}

/** What has been said about a contradiction that still stands. */
interface Told {
  /** By signature, what each listed source claimed. */
  readonly conflicts: Map<string, ReadonlyMap<string, string | undefined>>;
  /** Its claims have changed since it was said. */
  hasChanged: boolean;
}

/** Values up to this are shown whole; derived events are bounded (architecture, section 2). */
const WHOLE_CHARS = 256;

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
    before.hasChanged = true;
    const claims = ledger.claimsOn(key);
    const present = sure(liveOn(ledger, key));
    for (const [signature, said] of before.conflicts) {
      const stands = [...said].every(([source, value]) => {
        const claim = claims.get(source);
        const isSame = claim?.standing === "live" && claim.value === value;
        return isSame && isContradicted(claim, present);
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

  /** What an agent reports as a conflict binds nobody, but it can be settled. */
  report({ envelope, frame }: DomainEvent, ledger: Ledger): void {
    const subject = payloadText(envelope, "subject") ?? "";
    ledger.remember(ledger.reports, envelope.id, subject, frame.at);
  }

  /** A `belief.revised` settles what it names: the conflict, or a claim of it. */
  revise({ envelope, frame }: DomainEvent, ledger: Ledger): void {
    const { causation_id: cause, source } = envelope;
    if (cause === undefined) return;
    const { assertions, conflicts, reports } = ledger;
    for (const key of [assertions.get(cause)?.key, conflicts.get(cause), reports.get(cause)]) {
      if (key === undefined || ledger.claimsOn(key).size === 0) continue;
      const own = ledger.claimsOn(key).get(source);
      // Whoever has a claim there changes that one; between others it is as it was told.
      if (own?.standing === "live") this.#told.get(ledger)?.get(key)?.conflicts.clear();
      else this.#told.get(ledger)?.delete(key);
      entry(this.#revised, ledger).set(key, frame.seq);
      own?.otherValues.add(revisedTo(envelope));
    }
  }

  /** A `belief.conflict.detected` of the service. */
  detect({ envelope, frame }: DomainEvent, ledger: Ledger): void {
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
    this.#once(ledger, subject, listed, payloadField(envelope, "claim_count"));
    ledger.remember(ledger.conflicts, envelope.id, subject, frame.at);
  }

  /** Who says what makes two conflicts the same one. */
  #once(ledger: Ledger, subject: string, listed: readonly unknown[], count: unknown): void {
    const told = entry(this.#told, ledger);
    const before = told.get(subject) ?? { conflicts: new Map(), hasChanged: true };
    told.set(subject, before);
    const claims = ledger.claimsOn(subject);
    const said = new Map(sourcesOf(listed).map((source) => [source, claims.get(source)?.value]));
    const shown = listed.map((each) =>
      isObject(each) ? [textOf(each.source), textOf(each.value)] : [],
    );
    const signature = JSON.stringify([count, [...said].sort(), shown.map(textOf).sort()]);
    // Where not all are listed, those that are not may be others.
    const isWhole = count === undefined || count === listed.length;
    if (before.conflicts.has(signature) && (isWhole || !before.hasChanged)) {
      const message = `the same conflict about ${subject} has been detected before`;
      this.#context.sink.add("conflict-twice", message);
    }
    before.conflicts.set(signature, said);
    before.hasChanged = false;
  }

  /** A `belief.revised` of the service: a conflict has ended without anybody's revision. */
  resolve({ envelope }: DomainEvent, ledger: Ledger): void {
    const { sink, isLenient } = this.#context;
    const id = envelope.causation_id ?? "";
    const key = ledger.conflicts.get(id);
    ledger.conflicts.delete(id);
    if (key === undefined) {
      const message = `${id} is called resolved, which is no conflict that stands`;
      if (!isLenient) sink.add("conflict-resolved", message);
      return;
    }
    const settled = this.#revised.get(ledger)?.get(key);
    if (settled === undefined && contradict(demanded(liveOn(ledger, key)))) {
      sink.add("conflict-resolved", `the claims on ${key} still contradict each other`);
    }
  }

  /** Keys whose claims contradict each other, and nobody has said so; with the newest of these claims. */
  untold(ledger: Ledger): { key: string; claim: Assertion }[] {
    if (ledger.isExcused) return [];
    const untold: { key: string; claim: Assertion }[] = [];
    const told = this.#told.get(ledger);
    for (const key of ledger.keys()) {
      if (told?.has(key)) continue;
      const settled = this.#revised.get(ledger)?.get(key) ?? 0;
      const claims = liveOn(ledger, key).filter(({ seq }) => seq > settled);
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
    const { source, value, confidence, is_cut: isCut } = isObject(each) ? each : {};
    const claim = claims.get(String(source));
    if (claim === undefined || claim.standing === "withdrawn") return `${source} claims nothing`;
    const isWhole = isCut !== true || (claim.value?.length ?? 0) <= WHOLE_CHARS;
    if (isWhole && !valuesOf(claim).includes(textOf(value))) {
      return `${source} does not claim ${JSON.stringify(value).slice(0, 80)}`;
    }
    if (confidence !== undefined && confidence !== claim.confidence) {
      return `${source} is not ${String(confidence)} sure`;
    }
    if (!isContradicted(claim, present)) {
      return `nobody contradicts ${source}`;
    }
  }
  return new Set(sourcesOf(listed)).size < listed.length ? "a source is listed twice" : undefined;
}

const liveOn = (ledger: Ledger, key: string): Assertion[] =>
  [...ledger.claimsOn(key).values()].filter(({ standing }) => standing === "live");

const valuesOf = ({ value, otherValues }: Assertion): string[] =>
  value === undefined ? [...otherValues] : [value, ...otherValues];

function sourcesOf(listed: readonly unknown[]): string[] {
  return listed.map((each) => String(isObject(each) ? each.source : ""));
}

/** The validity of each claim that is not withdrawn, whichever of its ends is right. */
function permitted(claims: readonly Assertion[]): Span[] {
  return claims.flatMap((claim) => {
    const { from, end, others } = claim.window;
    const latest = Math.max(end, ...others);
    if (claim.standing === "withdrawn" || latest <= from) return [];
    return valuesOf(claim).map((value) => ({ source: claim.source, from, end: latest, value }));
  });
}

/** The validity of each claim of which nothing is in doubt. */
function sure(claims: readonly Assertion[]): Span[] {
  return claims.flatMap(({ source, value, otherValues, window: { from, end, others } }) =>
    value === undefined || end <= from || others.size > 0 || otherValues.size > 0
      ? []
      : [{ source, from, end, value }],
  );
}

/** The time during which each such claim was both known and valid. */
const demanded = (claims: readonly Assertion[]): Span[] =>
  claims.flatMap((claim) =>
    sure([claim]).map((span) => ({ ...span, from: Math.max(span.from, claim.at) })),
  );

const isContradicted = (claim: Assertion, present: readonly Span[]): boolean =>
  permitted([claim]).some((span) => present.some((other) => overlap(span, other)));

const overlap = (one: Span, other: Span): boolean =>
  one.source !== other.source &&
  one.value !== other.value &&
  one.from < other.end &&
  other.from < one.end;

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
