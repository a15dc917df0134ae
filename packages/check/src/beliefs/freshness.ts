/** Windows: who changes them, and when they expire (spec 6.2; C26). */
import { type DomainEvent, instantIn, payloadField, payloadText } from "../domain-event.ts";
import { type Assertion, isClaim } from "./assertion.ts";
import type { BeliefContext } from "./context.ts";
import type { Ledger } from "./ledger.ts";
import { changeWindow, NEVER, perhapsChangeWindow } from "./window.ts";

export class FreshnessRules {
  readonly #context: BeliefContext;

  constructor(context: BeliefContext) {
    this.#context = context;
  }

  /** Whoever asserts it, or the system that keeps it, says how long it holds (spec 6.2). */
  change(event: DomainEvent, ledger: Ledger): void {
    const { envelope } = event;
    const resource = payloadText(envelope, "resource") ?? "";
    const newEnd = instantIn(envelope, "new_valid_until");
    const all = [...ledger.named(resource)].filter(
      ({ standing }) => standing === "live" || standing === "unsure",
    );
    const own = all.filter(({ source }) => source === envelope.source);
    const named = ledger.assertions.get(envelope.causation_id ?? "");
    const isClaimed = all.some(({ standing }) => standing === "live");
    const isStrange = isClaimed && own.length === 0 && !keeps(envelope.source, resource);
    if (isStrange && !this.#context.isLenient) {
      const message = `${envelope.source} changes the window of ${resource}, which it never asserted`;
      this.#context.sink.add("window-party", message);
    }
    if (newEnd === undefined) return;
    const createdAt = Date.parse(envelope.created_at);
    const isOwn = own.length > 0 && own.every(({ standing }) => standing === "live");
    if (isOwn && (named === undefined || own.includes(named))) {
      for (const assertion of own) {
        const before = new Set([assertion.window.end, ...assertion.window.others]);
        if (!changeWindow(assertion.window, newEnd, createdAt)) continue;
        renewAll(ledger, assertion);
        const { end, others } = assertion.window;
        if (!before.has(end) && others.size === 0) ledger.reopen(assertion, end);
      }
      return;
    }
    // Whose window is meant, nobody says.
    for (const assertion of all) {
      perhapsChangeWindow(assertion.window, newEnd, createdAt);
      renewAll(ledger, assertion);
    }
  }

  /** An observer has noticed it before the service (spec 6.2). */
  noticed({ envelope, frame }: DomainEvent, ledger: Ledger): void {
    const resource = payloadText(envelope, "resource") ?? "";
    for (const assertion of ledger.named(resource)) ledger.notice(assertion, frame.at);
  }

  /** A `freshness.expired` of the service. */
  expire(event: DomainEvent, ledger: Ledger): void {
    const { envelope, frame } = event;
    const { sink, isLenient } = this.#context;
    const resource = payloadText(envelope, "resource") ?? "";
    const end = instantIn(envelope, "valid_until");
    this.#checkFields(event, end);
    if (end === undefined) return;
    if (frame.at < end) {
      sink.add("freshness-early", `${resource} expires at ${frame.at}, it is due at ${end}`);
    }
    const assertion = ledger.assertions.get(envelope.causation_id ?? "");
    if (assertion !== undefined || !isLenient) this.#checkWindow(resource, end, assertion);
    if (assertion === undefined) return;
    if (ledger.hasExpired(assertion, end)) {
      sink.add("freshness-twice", `the window of ${resource} to ${end} has expired before`);
    }
    ledger.expire(assertion, end, frame.at);
  }

  /** Both places name the end (C26); nobody detects what is still to come. */
  #checkFields({ envelope }: DomainEvent, end: number | undefined): void {
    const { sink } = this.#context;
    const { valid_until: until } = envelope;
    if (end === undefined || until === undefined || Date.parse(until) !== end) {
      const inPayload = String(payloadField(envelope, "valid_until"));
      sink.add("freshness-fields", `valid_until is ${String(until)}, in the payload ${inPayload}`);
    }
    const detectedAt = instantIn(envelope, "detected_at");
    if (detectedAt === undefined || (end !== undefined && detectedAt < end)) {
      sink.add("freshness-fields", `detected_at is ${String(detectedAt)}, the end ${String(end)}`);
    }
    if (instantIn(envelope, "cached_at") === undefined) {
      sink.add("freshness-fields", "cached_at is missing");
    }
  }

  #checkWindow(resource: string, end: number, assertion: Assertion | undefined): void {
    const message = faultOf(resource, end, assertion);
    if (message !== undefined) this.#context.sink.add("freshness-window", message);
  }

  /** Claims whose window has ended by `now` and of which nobody has heard. */
  overdue(ledger: Ledger, now: number): Assertion[] {
    if (ledger.isExcused) return [];
    return [...ledger.assertions.values()].filter((assertion) => {
      const { window, standing } = assertion;
      if (!isClaim(assertion) || standing !== "live" || window.others.size > 0) return false;
      return window.end <= now && !ledger.isKnown(assertion);
    });
  }
}

function faultOf(resource: string, end: number, assertion: Assertion | undefined) {
  if (assertion === undefined) return `${resource} expires because of nothing that was asserted`;
  const { id, key, standing, window } = assertion;
  if (standing === "replaced") return `${id} expires, which its source has replaced`;
  if (end !== window.end && !window.others.has(end)) {
    return `${id} expires at ${end}, its window ends at ${window.end}`;
  }
  const isNamed = key !== undefined && isClaim(assertion) && assertion.type !== "belief.revised";
  if (isNamed && resource !== key) return `${id} is a claim on ${key}, what expires is ${resource}`;
  return undefined;
}

/** A new end may be due once more. */
export function renewAll(ledger: Ledger, assertion: Assertion): void {
  const { end, others } = assertion.window;
  for (const each of [end, ...others]) if (each !== NEVER) ledger.renew(assertion, each);
}

/** `memory:main` keeps what is called `memory:…`. */
const keeps = (source: string, resource: string): boolean =>
  ["memory:", "context:", "state:"].some(
    (kind) => source.startsWith(kind) && resource.startsWith(kind),
  );
