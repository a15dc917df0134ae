import { isDerivedId, missingConditionalFields, sessionIdOf } from "@harmovela/envelope";
import { type DomainEvent, payloadText } from "../domain-event.ts";
import type { DomainRules, Missing } from "../domain-rules.ts";
import type { FindingSink } from "../finding.ts";
import { defaultSettings, readSettings } from "../settings.ts";
import {
  type Assertion,
  assertionOf,
  assertsSomething,
  isClaim,
  type Standing,
} from "./assertion.ts";
import { ConflictRules } from "./conflicts.ts";
import { type BeliefContext, ledgerOf } from "./context.ts";
import { DependentRules } from "./dependents.ts";
import { FreshnessRules, renewAll } from "./freshness.ts";
import type { Ledger } from "./ledger.ts";
import { isInvalidation } from "./retraction.ts";

/** Every rule of the domain `beliefs` (spec 6): claims, what rests on them, and how long they hold. */
export class BeliefDomain implements DomainRules {
  readonly #context: BeliefContext;
  readonly #conflicts: ConflictRules;
  readonly #dependents: DependentRules;
  readonly #freshness: FreshnessRules;

  constructor(sink: FindingSink, isLenient: boolean) {
    const context = { sink, isLenient, settings: defaultSettings(), ledgers: new Map() };
    this.#context = context;
    this.#conflicts = new ConflictRules(context);
    this.#dependents = new DependentRules(context);
    this.#freshness = new FreshnessRules(context);
  }

  settings(recorded: unknown): void {
    readSettings(this.#context.settings, recorded);
  }

  onEvent(event: DomainEvent): void {
    const ledger = this.#ledgerAt(event);
    if (isOwed(event)) this.#onOwed(event, ledger);
    else if (event.final === undefined) this.#onSaid(event, ledger);
  }

  /** A retraction with dependents takes effect when its plan begins; what the service owes, when it is logged. */
  onBegun(event: DomainEvent): void {
    const { envelope } = event;
    if (isOwed(event) && envelope.type === "state.invalidated") return;
    if (isInvalidation(envelope)) this.#onSaid(event, this.#ledgerAt(event));
    else this.#context.sink.add("begun-form", `no walk begins with ${envelope.type}`);
  }

  /** What is held of an assertion, as far as the log says; undefined: it is none that is known. */
  standingOf(tenant: string, id: string): Standing | undefined {
    const assertion = this.#context.ledgers.get(tenant)?.assertions.get(id);
    return assertion === undefined || isClaim(assertion) ? assertion?.standing : "unsure";
  }

  onObligationFailed(tenant: string): void {
    ledgerOf(this.#context, tenant).isExcused = true;
  }

  /** What the service owes and has not said, in a log that is at rest at `now`. */
  *missing(now: number): Generator<Missing> {
    for (const ledger of this.#context.ledgers.values()) {
      for (const claim of this.#dependents.unmarked(ledger)) {
        yield missing("mark-open", claim, "rests on what was retracted, and nobody was told");
      }
      for (const claim of this.#freshness.overdue(ledger, now)) {
        yield missing("freshness-open", claim, `was valid until ${claim.window.end}`);
      }
      for (const { key, claim } of this.#conflicts.untold(ledger)) {
        yield missing("conflict-open", claim, `contradicts another claim on ${key}`);
      }
    }
  }

  #onSaid(event: DomainEvent, ledger: Ledger): void {
    const { envelope } = event;
    this.#checkFields(event);
    if (isInvalidation(envelope)) {
      const keys = this.#dependents.retract(event, ledger);
      for (const key of keys) this.#conflicts.settle(ledger, key);
    } else if (envelope.type === "freshness.window.changed") {
      this.#freshness.change(event, ledger);
      this.#conflicts.review(ledger, payloadText(envelope, "resource") ?? "");
    } else if (envelope.type === "belief.conflict.detected") this.#conflicts.report(event, ledger);
    else if (envelope.type === "freshness.expired") this.#freshness.noticed(event, ledger);
    else if (assertsSomething(envelope)) this.#assert(event, ledger);
  }

  #assert(event: DomainEvent, ledger: Ledger): void {
    const cause = ledger.assertions.get(event.envelope.causation_id ?? "");
    const assertion = assertionOf(event, cause);
    ledger.add(assertion);
    renewAll(ledger, assertion);
    this.#dependents.arrive(assertion, ledger);
    if (assertion.type === "belief.revised") this.#conflicts.revise(event, ledger);
    if (assertion.key !== undefined) this.#conflicts.settle(ledger, assertion.key);
  }

  #onOwed(event: DomainEvent, ledger: Ledger): void {
    const { type, id } = event.envelope;
    if (type === "freshness.expired") this.#freshness.expire(event, ledger);
    else if (type === "belief.conflict.detected") this.#conflicts.detect(event, ledger);
    else if (type === "belief.revised") this.#conflicts.resolve(event, ledger);
    else if (type === "state.invalidated") this.#dependents.mark(event, ledger);
    else this.#context.sink.add("owed-type", `the service says ${type} by itself: ${id}`);
  }

  /** Which profiles a session negotiated stands in another log; without one the defaults are in force. */
  #checkFields({ envelope }: DomainEvent): void {
    const { sink, settings } = this.#context;
    if (sessionIdOf(envelope) !== undefined) return;
    const missing = missingConditionalFields(envelope, settings.defaultProfiles);
    if (missing.length === 0) return;
    sink.add("profile-fields", `${envelope.type} lacks ${missing.join(", ")}`);
  }

  /** The service forgets after the retention, at its leisure; here it is remembered for twice as long. */
  #ledgerAt({ tenant, frame }: DomainEvent): Ledger {
    const ledger = ledgerOf(this.#context, tenant);
    ledger.forget(frame.at - 2 * this.#context.settings.retentionMs);
    return ledger;
  }
}

/** The last event of a plan that an agent's envelope began is that envelope, and said by the agent. */
const isOwed = ({ envelope, owedBy, final }: DomainEvent): boolean =>
  owedBy !== undefined && (final === undefined || isDerivedId(envelope.id));

const missing = (rule: Missing["rule"], claim: Assertion, why: string): Missing => ({
  rule,
  seq: claim.seq,
  subject: claim.subject,
  message: `${claim.id} of ${claim.source} ${why}`,
});
