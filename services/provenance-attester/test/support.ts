import type {
  Decider,
  Domain,
  DomainEntry,
  Envelope,
  EventEntry,
  SignatureFacts,
} from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type Given, given } from "@harmovela/testkit";
import {
  type AttesterSettings,
  type AttesterState,
  createAttesterDecider,
  DEFAULT_ATTESTER_SETTINGS,
} from "../src/index.ts";
import { createReads } from "../src/reads.ts";
import type { Archive } from "../src/stored.ts";

export const SERVICE = DEFAULT_ATTESTER_SETTINGS.service;
/** Where the clock stands at first, and `created_at` of what says nothing else. */
export const NOW = Date.UTC(2026, 10, 30, 10);
export const SECURITY = ["harmovela.security.v1"];

export const iso = (ms: number): string => new Date(ms).toISOString();

export type Fields = Partial<Envelope>;
let made = 0;

export function event(type: string, payload: JsonObject = {}, fields: Fields = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_${made}`,
    type,
    source: "agent:a",
    created_at: iso(NOW),
    payload,
    ...fields,
  };
}

/** `memory.fact.added` by agent:a unless told. */
export function fact(id: string, fields: Fields = {}): Envelope {
  return event("memory.fact.added", { fact_id: id, value: 1 }, fields);
}

export function retract(id: string, fields: Fields = {}): Envelope {
  const status = { belief_status: "retracted" } as const;
  return event("memory.fact.invalidated", { fact_id: id }, { ...status, ...fields });
}

/** Somebody else vouches for an event. */
export function attest(of: string, fields: Fields = {}): Envelope {
  const { source = "agent:v" } = fields;
  return event(
    "provenance.attestation.added",
    { attestor: source, method: "cross_reference" },
    { causation_id: of, source, ...fields },
  );
}

export function revoke(attestation: string, fields: Fields = {}): Envelope {
  const { source = "agent:v" } = fields;
  return event(
    "provenance.attestation.revoked",
    { attestor: source, reason: "was wrong" },
    { causation_id: attestation, source, ...fields },
  );
}

/** Cites events of agent:a as its evidence, the last one as its cause. */
export function resting(...ids: string[]): Fields {
  const last = ids.at(-1);
  return {
    evidence_chain: ids.map((id) => ({ source: "agent:a", id })),
    ...(last === undefined ? {} : { causation_id: last }),
  };
}

/** A scenario with logs beside its own. */
export class World {
  readonly own: Given<AttesterState>;
  readonly settings: AttesterSettings;
  /** What the host finds out about signatures, by the event that carries one. */
  readonly signatures = new Map<string, SignatureFacts>();
  /** What the logs hold, by domain and position. */
  readonly stored = new Map<string, Envelope>();
  /** Entries of other logs, with how many of the own log stood before them. */
  readonly observed: { after: number; domain: Domain; entry: DomainEntry }[] = [];
  readonly #lengths = new Map<Domain, number>();

  constructor(settings: Partial<AttesterSettings> = {}) {
    this.settings = { ...DEFAULT_ATTESTER_SETTINGS, ...settings };
    const decider = createAttesterDecider(this.settings);
    const signed: Decider<AttesterState> = {
      ...decider,
      decide: (state, input, context) => {
        const signature = this.signatures.get(input.envelope.id);
        return decider.decide(state, { ...input, ...(signature && { signature }) }, context);
      },
    };
    this.own = given(signed, { service: SERVICE, at: NOW });
  }

  get state(): AttesterState {
    return this.own.state;
  }

  /** Events stand in another log. */
  seen(domain: Domain, ...envelopes: Envelope[]): this {
    for (const envelope of envelopes) this.entry(domain, { kind: "event", envelope });
    return this;
  }

  /** The same of another tenant. */
  seenOf(tenant: string, domain: Domain, ...envelopes: Envelope[]): this {
    for (const envelope of envelopes) this.entry(domain, { kind: "event", envelope }, tenant);
    return this;
  }

  /** An entry of another log; its position. */
  entry(
    domain: Domain,
    body:
      | { kind: "event"; envelope: Envelope; cause?: EventEntry["cause"] }
      | { kind: "begun"; envelope: Envelope },
    tenant = this.own.tenant,
  ): number {
    const seq = (this.#lengths.get(domain) ?? 0) + 1;
    this.#lengths.set(domain, seq);
    const { now: at } = this.own;
    const frame = { seq, tenant, at, epoch: 1, prev: seq - 1, seen: {} };
    const { envelope } = body;
    const entry: DomainEntry =
      body.kind === "event"
        ? { ...frame, kind: "event", cause: body.cause ?? { in: seq }, envelope }
        : {
            ...frame,
            kind: "begun",
            cause: { in: seq },
            plan: { id: envelope.id, kind: envelope.type, envelope },
          };
    if (body.kind === "event") this.stored.set(`${domain} ${seq}`, envelope);
    this.observed.push({ after: this.own.log.length, domain, entry });
    this.own.decider.observe?.(this.state, domain, entry);
    return seq;
  }

  /** The host tells where logs begin now. */
  trimmed(first: Partial<Record<Domain, number>>): this {
    this.own.append({ kind: "observed", first, cause: { owed: "observed" }, tenant: "-" });
    return this;
  }

  /** What the service writes by itself at the clock's time. */
  derived(now?: number): Envelope[] {
    return this.own
      .settle(now)
      .flatMap((entry) => (entry.kind === "event" ? [entry.envelope] : []));
  }

  get archive(): Archive {
    return {
      event: async (seq, domain = "provenance") => {
        if (domain !== "provenance") return this.stored.get(`${domain} ${seq}`);
        const entry = this.own.log[seq - 1];
        return entry?.kind === "event" ? entry.envelope : undefined;
      },
      signature: async ({ id }) => this.signatures.get(id),
    };
  }

  async read(
    verb: "chain" | "attestations" | "graph" | "may",
    params: JsonObject,
  ): Promise<JsonObject> {
    const context = { tenant: this.own.tenant, ...this.archive };
    return (await createReads(this.settings)[verb](this.state, params, context)) as JsonObject;
  }

  async count(id: string): Promise<number> {
    return Number((await this.read("attestations", { event_id: id })).attestation_count);
  }
}

export function world(settings: Partial<AttesterSettings> = {}): World {
  return new World(settings);
}

export function payloadOf(envelope: Envelope | undefined): JsonObject {
  const payload = envelope?.payload;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new Error("no payload object");
  }
  return payload;
}

export function errorOf(envelope: Envelope | undefined): JsonObject {
  return payloadOf(envelope).error as JsonObject;
}
