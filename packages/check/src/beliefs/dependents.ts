/** What rests on what was retracted is marked for re-evaluation: all of it, nothing else, once (spec 6.1). */
import type { Envelope } from "@harmovela/envelope";
import { type DomainEvent, payloadField, payloadText } from "../domain-event.ts";
import { type Assertion, type Certainty, isClaim, keyOf } from "./assertion.ts";
import type { BeliefContext } from "./context.ts";
import type { Ledger } from "./ledger.ts";
import { mustMark, type Retraction } from "./retraction.ts";

interface Step {
  id: string;
  certainty: Certainty;
}

export class DependentRules {
  readonly #context: BeliefContext;

  constructor(context: BeliefContext) {
    this.#context = context;
  }

  /** From here on it is withdrawn, and what rests on it is owed a mark. The keys that it speaks of. */
  retract({ envelope, frame }: DomainEvent, ledger: Ledger): Set<string> {
    const retraction: Retraction = { id: envelope.id, at: frame.at, marks: new Map() };
    ledger.remember(ledger.retractions, retraction.id, retraction, retraction.at);
    const replacement = payloadText(envelope, "replaced_by");
    const seeds = seedsOf(envelope, ledger);
    const own = [...seeds].find(([, certainty]) => certainty === "surely")?.[0];
    const steps: Step[] = [];
    const keys = new Set<string>();
    for (const [seed, standing] of seeds) {
      // Of several sources of a subject, one that withdraws its claim withdraws no other.
      if (seed === own) ledger.end(seed, "withdrawn", frame.at);
      else if (!seed.names.includes(own?.key ?? "")) ledger.end(seed, "unsure", frame.at);
      const certainty = standing === "surely" && mustMark(envelope) ? "surely" : "perhaps";
      seed.taints.set(retraction, { certainty, isSeed: true });
      steps.push({ id: seed.id, certainty });
      if (seed.key !== undefined) keys.add(seed.key);
      // What ended in favour of something else is in doubt when that falls.
      if (replacement !== undefined) this.#rest(ledger, seed, replacement);
    }
    const { causation_id: cause } = envelope;
    if (cause !== undefined && !ledger.assertions.has(cause)) {
      const all = new Set([...(ledger.retractedIds.get(cause) ?? []), retraction]);
      ledger.remember(ledger.retractedIds, cause, all, retraction.at);
    }
    if (cause !== undefined) steps.push({ id: cause, certainty: "perhaps" });
    spread(ledger, retraction, steps);
    return keys;
  }

  /** What rests on something that is retracted already is marked at once. */
  arrive(assertion: Assertion, ledger: Ledger): void {
    // Perhaps it was taken back before it came.
    if (ledger.retractedIds.has(assertion.id)) assertion.standing = "unsure";
    for (const ground of assertion.grounds) this.#fall(ledger, assertion, ground);
    // What cited it before it came perhaps rests on what is in doubt already.
    for (const retraction of assertion.lineage.retractions) {
      spread(ledger, retraction, [{ id: assertion.id, certainty: "perhaps" }]);
    }
  }

  #rest(ledger: Ledger, assertion: Assertion, ground: string): void {
    ledger.rest(assertion, ground);
    this.#fall(ledger, assertion, ground);
  }

  /** What its ground is tainted with, it is tainted with. */
  #fall(ledger: Ledger, assertion: Assertion, ground: string): void {
    const spreadAs = (retraction: Retraction, certainty: Certainty): void =>
      spread(ledger, retraction, taint(assertion, retraction, certainty));
    for (const early of ledger.retractedIds.get(ground) ?? []) spreadAs(early, "perhaps");
    const found = ledger.assertions.get(ground);
    if (found === undefined || found === assertion) return;
    if (found.lineage !== assertion.lineage) {
      for (const retraction of found.lineage.retractions) spreadAs(retraction, "perhaps");
    }
    const before = assertion.at - this.#context.settings.retentionMs;
    // Who puts right what is in doubt, or says it anew, settles it and does not rest on it.
    const isAnew = found.key === assertion.key && found.source === assertion.source;
    const isSettled = assertion.revises === ground || isAnew || assertion.weakGrounds.has(ground);
    for (const [retraction, { certainty, isSeed }] of found.taints) {
      const isSure = certainty === "surely" && !isSettled && retraction.at >= before;
      const passes = isSure && (isSeed || found.standing === "live");
      spreadAs(retraction, passes ? "surely" : "perhaps");
    }
  }

  /** A `state.invalidated` of the service. */
  mark({ envelope, frame }: DomainEvent, ledger: Ledger): void {
    const { sink, isLenient } = this.#context;
    const resource = payloadText(envelope, "resource");
    const dependsOn = payloadField(envelope, "depends_on");
    if (envelope.belief_status !== "unknown" || resource === undefined || isEmpty(dependsOn)) {
      const status = String(envelope.belief_status);
      sink.add("mark-fields", `a mark of ${String(resource)} with belief_status ${status}`);
    }
    if (resource === undefined) return;
    const cause = envelope.causation_id ?? "";
    const retraction = ledger.retractions.get(cause);
    if (retraction === undefined) {
      // Evidence that was lost (spec section 8): of that the log of `provenance` tells.
      const isOfProvenance = frame.seen.has("provenance") && !ledger.assertions.has(cause);
      if (isOfProvenance) {
        this.#markLost(envelope, ledger);
        return;
      }
      const message = `${resource} is marked because of ${String(envelope.causation_id)}, which retracts nothing`;
      if (!isLenient) sink.add("mark-cause", message);
      return;
    }
    const event = ledger.assertions.get(payloadText(envelope, "event_id") ?? "");
    const meant = event?.names.includes(resource) === true ? [event] : ledger.named(resource);
    const reached = [...meant].filter(({ taints }) => taints.get(retraction)?.isSeed === false);
    for (const assertion of reached) assertion.isMarked = true;
    if (isLenient) return;
    if (reached.length === 0) {
      sink.add("mark-unreachable", `${resource} does not rest on what ${retraction.id} retracts`);
      return;
    }
    const name = event?.id ?? resource;
    const marks = (retraction.marks.get(name) ?? 0) + 1;
    retraction.marks.set(name, marks);
    if (marks > reached.length) {
      sink.add("mark-twice", `${resource} has been marked because of ${retraction.id} before`);
    }
  }

  /** Whoever is told of once for a loss is not told of again. */
  #markLost(envelope: Envelope, ledger: Ledger): void {
    const assertion = ledger.assertions.get(payloadText(envelope, "event_id") ?? "");
    if (assertion === undefined) return;
    if (assertion.isMarked && !this.#context.isLenient) {
      const message = `${assertion.id} has been marked before what it rests on was lost`;
      this.#context.sink.add("mark-twice", message);
    }
    assertion.isMarked = true;
  }

  /** Conclusions that rest on what was retracted, and of which nobody was told. */
  unmarked(ledger: Ledger): Assertion[] {
    if (ledger.isExcused) return [];
    return [...ledger.assertions.values()].filter((assertion) => {
      if (!isClaim(assertion) || assertion.standing !== "live" || assertion.isMarked) return false;
      return [...assertion.taints.values()].some(
        ({ certainty, isSeed }) => certainty === "surely" && !isSeed,
      );
    });
  }
}

/** What is retracted: what its source says of the key now, surely; whatever else goes by its name, perhaps. */
function seedsOf(envelope: Envelope, ledger: Ledger): Map<Assertion, Certainty> {
  const seeds = new Map<Assertion, Certainty>();
  const resource = keyOf(envelope) ?? payloadText(envelope, "resource") ?? "";
  const affected = payloadField(envelope, "affected_keys");
  const also = Array.isArray(affected) ? affected.filter((key) => typeof key === "string") : [];
  for (const name of [resource, ...also, ...also.map((key) => `context:${key}`)]) {
    for (const assertion of ledger.named(name)) seeds.set(assertion, "perhaps");
  }
  const own = ledger.claimsOn(resource).get(envelope.source);
  const named = ledger.assertions.get(envelope.causation_id ?? "");
  const isOfAnother = named?.key === resource && named.source !== envelope.source;
  const isPartial = payloadField(envelope, "scope") === "partial";
  if (own?.standing === "live" && !isOfAnother && !isPartial) {
    seeds.set(own, "surely");
  }
  return seeds;
}

/** The taint it gets, and the step on from it; nothing when it had as much before. */
function taint(assertion: Assertion, retraction: Retraction, certainty: Certainty): Step[] {
  const before = assertion.taints.get(retraction);
  if (before !== undefined && (before.certainty === "surely" || certainty === "perhaps")) {
    if (before.isSeed) assertion.taints.set(retraction, { ...before, isSeed: false });
    return [];
  }
  assertion.taints.set(retraction, { certainty, isSeed: false });
  const passes = certainty === "surely" && assertion.standing === "live";
  const steps: Step[] = [{ id: assertion.id, certainty: passes ? "surely" : "perhaps" }];
  const { versions, retractions } = assertion.lineage;
  if (!retractions.has(retraction)) {
    retractions.add(retraction);
    for (const { id } of versions) steps.push({ id, certainty: "perhaps" });
  }
  return steps;
}

/** Along the edges, however deep and whatever cycles there are. */
function spread(ledger: Ledger, retraction: Retraction, steps: Step[]): void {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    for (const assertion of ledger.restingOn(step.id)) {
      const certainty = assertion.weakGrounds.has(step.id) ? "perhaps" : step.certainty;
      steps.push(...taint(assertion, retraction, certainty));
    }
  }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  (Array.isArray(value) && value.length === 0);
