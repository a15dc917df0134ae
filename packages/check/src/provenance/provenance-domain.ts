import {
  type Domain,
  type Envelope,
  missingConditionalFields,
  sessionIdOf,
} from "@harmovela/envelope";
import { type DomainEvent, payloadField, payloadText } from "../domain-event.ts";
import type { DomainRules, Missing } from "../domain-rules.ts";
import type { FindingSink } from "../finding.ts";
import type { PlanBook } from "../plan-book.ts";
import { isObject } from "../record.ts";
import { readSettings } from "../settings.ts";
import { Across, type ObservedLog } from "./across.ts";
import { checkChain } from "./chains.ts";
import type { SeenEvent } from "./events.ts";
import { defaultProvenanceSettings, readProvenanceSettings } from "./settings.ts";
import { Truncations } from "./truncations.ts";
import { Vouching } from "./vouching.ts";

/** Every rule of the domain `provenance` (spec section 8): of its own log, and, with the others, between them. */
export class ProvenanceDomain implements DomainRules {
  readonly #sink: FindingSink;
  readonly #plans: PlanBook;
  readonly #lenient: boolean;
  readonly #settings = defaultProvenanceSettings();
  readonly #across: Across;
  readonly #truncations: Truncations;
  readonly #tenants = new Map<string, Vouching>();

  constructor({
    sink,
    plans,
    isLenient,
    observed,
  }: {
    sink: FindingSink;
    plans: PlanBook;
    isLenient: boolean;
    observed: ReadonlyMap<Domain, ObservedLog>;
  }) {
    this.#sink = sink;
    this.#plans = plans;
    this.#lenient = isLenient;
    this.#across = new Across(this.#settings, observed, isLenient);
    this.#truncations = new Truncations(sink, this.#across, isLenient);
  }

  /** An event of another log, which the entries from here on have seen. */
  observe(domain: Domain, event: DomainEvent): void {
    this.#across.bookOf(event.tenant).add(domain, event);
  }

  settings(recorded: unknown): void {
    readSettings(this.#settings, recorded);
    readProvenanceSettings(this.#settings, recorded);
  }

  onEvent(event: DomainEvent): void {
    const { envelope, owedBy, final, tenant } = event;
    this.#across.forget(tenant, event.frame.at);
    if (owedBy !== undefined && final === undefined) this.#onOwed(event);
    else this.#onSaid(event);
    if (this.#across.isOn) this.#across.bookOf(tenant).add("provenance", event);
    if (envelope.type === "provenance.chain.truncated") {
      this.#truncations.told(event, owedBy !== undefined);
    }
  }

  #onSaid(event: DomainEvent): void {
    const { envelope, final } = event;
    if (final === undefined) this.#checkSaid(event);
    // What it waited for is there by now, and may show that it contradicts itself.
    else this.#checkEvidence(event);
    const vouching = this.#vouchingAt(event);
    if (envelope.type === "provenance.attestation.added") vouching.attest(event);
    else if (envelope.type === "provenance.attestation.revoked") vouching.revoke(event);
  }

  /** Only an attestation waits, and only for an event that it names. */
  onBegun(event: DomainEvent): void {
    const { envelope, owedBy } = event;
    const of = envelope.causation_id ?? envelope.evidence_chain?.at(-1)?.id;
    const isAttestation = envelope.type === "provenance.attestation.added";
    if (!isAttestation || owedBy !== undefined || of === undefined) {
      this.#sink.add("begun-form", `nothing waits with ${envelope.type} ${envelope.id}`);
      return;
    }
    this.#across.forget(event.tenant, event.frame.at);
    this.#checkSaid(event);
    this.#vouchingAt(event).wait(event);
  }

  onObligationFailed(tenant: string, id: string): void {
    this.#tenants.get(tenant)?.giveUp(id);
    this.#truncations.excuse(tenant);
  }

  /** A control entry `observed`: where logs begin now. */
  onObserved(body: Record<string, unknown>): void {
    if (!isObject(body.first)) {
      this.#sink.add("control-body", "observed says nothing of where logs begin");
      return;
    }
    for (const [domain, first] of Object.entries(body.first)) {
      if (typeof first !== "number" || !Number.isSafeInteger(first) || first < 1) {
        this.#sink.add("control-body", `the log of ${domain} begins with ${String(first)}`);
      } else if (first <= this.#across.firstOf(domain)) {
        this.#sink.add("observed-back", `the log of ${domain} is told to begin with ${first}`);
      } else this.#across.begins(domain, first);
    }
  }

  missing(): Iterable<Missing> {
    return this.#truncations.missing();
  }

  #onOwed(event: DomainEvent): void {
    const { envelope } = event;
    if (envelope.type === "event.rejected") this.#onRefusal(event);
    else if (envelope.type !== "provenance.chain.truncated")
      this.#sink.add("owed-type", `the service says ${envelope.type} by itself: ${envelope.id}`);
  }

  /** A plan that ends without its event. */
  #onRefusal(event: DomainEvent): void {
    const { envelope, tenant, owedBy } = event;
    const refused = payloadText(envelope, "acknowledged_event_id") ?? "";
    const plan = owedBy === refused ? this.#plans.refuse(tenant, refused) : undefined;
    if (plan === undefined) {
      const isKnown = this.#lenient && owedBy === refused;
      if (!isKnown) this.#sink.add("wait-refusal", `no plan of ${refused} ends with a refusal`);
      return;
    }
    if (envelope.target !== plan.envelope.source) {
      this.#sink.add("wait-refusal", `${refused} of ${plan.envelope.source} is refused to another`);
    }
    this.#vouchingAt(event).refuse(event, refused, isNeverSeen(envelope));
  }

  #checkEvidence({ envelope, tenant, frame }: DomainEvent): void {
    const known = {
      find: (id: string) => this.#across.knownFor(tenant, id, frame.at),
      isLost: (event: SeenEvent) => this.#across.isLost(event),
    };
    checkChain(this.#sink, known, envelope);
  }

  /** What an event says by itself (spec 4.2, section 8). */
  #checkSaid(event: DomainEvent): void {
    const { envelope } = event;
    this.#checkEvidence(event);
    const ids = (envelope.evidence_chain ?? []).map(({ id }) => id);
    if (new Set([...ids, envelope.id]).size <= ids.length) {
      this.#sink.add("chain-repeats", `the evidence of ${envelope.id} names an event twice`);
    }
    const { defaultProfiles, authenticated } = this.#settings;
    const hasSession = sessionIdOf(envelope) !== undefined;
    const profiles = hasSession ? this.#across.profilesOf(event) : defaultProfiles;
    if (profiles === undefined) return;
    const missing = missingConditionalFields(envelope, profiles);
    if (missing.length > 0) {
      this.#sink.add("profile-fields", `${envelope.type} lacks ${missing.join(", ")}`);
    }
    const attestor = payloadText(envelope, "attestor") ?? envelope.source;
    if (attestor === envelope.source) return;
    if (authenticated || profiles.includes("harmovela.security.v1")) {
      this.#sink.add("attestation-attestor", `${envelope.source} attests for ${attestor}`);
    }
  }

  #vouchingAt({ tenant, frame }: DomainEvent): Vouching {
    let vouching = this.#tenants.get(tenant);
    if (vouching === undefined) {
      vouching = new Vouching(this.#sink, this.#across, tenant, this.#lenient);
      this.#tenants.set(tenant, vouching);
    }
    vouching.forget(frame.at - 2 * this.#settings.retentionMs);
    return vouching;
  }
}

function isNeverSeen(envelope: Envelope): boolean {
  const error = payloadField(envelope, "error");
  const details = isObject(error) ? error.details : undefined;
  return isObject(details) && details.reason === "unknown_event";
}
