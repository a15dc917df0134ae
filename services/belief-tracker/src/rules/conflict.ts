/**
 * Which claims on a subject contradict each other: different sources, different values, overlapping
 * validity (spec 6.1). A claim without value contradicts nothing, nor does one that was overruled.
 */
import type { Instant } from "@harmovela/envelope";
import type { Claim, Subject } from "../state.ts";
import { endOf } from "./window.ts";

interface Span {
  claim: Claim;
  text: string;
  from: Instant;
  end: Instant;
}

/** Value by source, sources in order. Sorts once and looks at each claim twice. */
export function contestedClaims(subject: Subject): ReadonlyMap<string, string> {
  if (subject.claims.size < 2) return new Map();
  const spans = spansOf(subject);
  const contested = new Set<Span>();
  // Of what began before: the latest end. A span that ends at or before another begins does not overlap.
  const latest = new Extreme((a, b) => a.end > b.end);
  for (const span of spans) {
    const other = latest.differing(span.text);
    if (other !== undefined && other.end > span.from && span.end > span.from) contested.add(span);
    if (span.end > span.from) latest.take(span);
  }
  // Of what begins later: the earliest beginning.
  const earliest = new Extreme((a, b) => a.from < b.from);
  for (const span of spans.reverse()) {
    const other = earliest.differing(span.text);
    if (other !== undefined && other.from < span.end && span.end > span.from) contested.add(span);
    if (span.end > span.from) earliest.take(span);
  }
  const sorted = [...contested].sort((a, b) => compare(a.claim.source, b.claim.source));
  return new Map(sorted.map(({ claim, text }) => [claim.source, text]));
}

function spansOf(subject: Subject): Span[] {
  const spans: Span[] = [];
  for (const claim of subject.claims.values()) {
    const { text, overruledBy, validFrom: from } = claim;
    if (text === undefined || overruledBy !== undefined) continue;
    spans.push({ claim, text, from, end: endOf(claim) ?? Number.POSITIVE_INFINITY });
  }
  return spans.sort((a, b) => a.from - b.from || compare(a.claim.source, b.claim.source));
}

/** The best span seen, and the best one of another value. */
class Extreme {
  readonly #isBetter: (a: Span, b: Span) => boolean;
  #first: Span | undefined;
  #second: Span | undefined;

  constructor(isBetter: (a: Span, b: Span) => boolean) {
    this.#isBetter = isBetter;
  }

  differing(text: string): Span | undefined {
    return this.#first?.text === text ? this.#second : this.#first;
  }

  take(span: Span): void {
    const first = this.#first;
    if (first === undefined || this.#isBetter(span, first)) {
      if (first !== undefined && first.text !== span.text) this.#second = first;
      this.#first = span;
    } else if (
      span.text !== first.text &&
      (this.#second === undefined || this.#isBetter(span, this.#second))
    ) {
      this.#second = span;
    }
  }
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function isSameContest(
  a: ReadonlyMap<string, string> | undefined,
  b: ReadonlyMap<string, string> | undefined,
): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.size !== b.size) return false;
  for (const [source, text] of a) if (b.get(source) !== text) return false;
  return true;
}

/** Nothing in `a` that is not in `b`. */
export function isPartOf(
  a: ReadonlyMap<string, string>,
  b: ReadonlyMap<string, string> | undefined,
): boolean {
  if (b === undefined) return a.size === 0;
  for (const [source, text] of a) if (b.get(source) !== text) return false;
  return true;
}
