/**
 * State of the domain `provenance`: a fold of its log and of those that it observes.
 *
 * 1. An event is known by its id in its tenant, whichever log holds it. What is cited and was not seen
 *    yet stands for itself (`Missing`) as long as somebody waits for it or a live assertion rests on it.
 * 2. Ids and subjects come from agents, so tables are Maps.
 * 3. Only what a live assertion rests on is linked backwards (`citedBy`): that is what a truncation must find.
 * 4. Where a log begins now is known from `observed` entries alone.
 * 5. Between two entries of the own log those of the others may come in any order among the logs: what is
 *    ordered is ordered by times and positions, and only entries of the own log let go of anything.
 */
import {
  createSessionBook,
  type Domain,
  type Envelope,
  Heap,
  type Instant,
  type SessionBook,
} from "@harmovela/envelope";
import type { AttesterSettings } from "./settings.ts";

/** One step of a lineage, as somebody names it. */
export interface Link {
  readonly id: string;
  /** Who is said to have sent it; undefined where only a cause is named. */
  readonly source: string | undefined;
  /** What its content is said to be (`digest`). */
  readonly digest: string | undefined;
}

/** Somebody vouches for an event (spec section 8). */
export interface Attestation {
  readonly id: string;
  /** Who sent it: for whom it counts. */
  readonly source: string;
  /** Whom it names, where that is somebody else. */
  readonly claimed: string | undefined;
  readonly method: string;
  readonly result: string | undefined;
  readonly at: Instant;
  of: Known;
  revoked: Revocation | undefined;
}

export interface Revocation {
  readonly id: string;
  readonly by: string;
  readonly reason: string;
  readonly at: Instant;
}

/** Why an event is no longer to be relied on. */
export interface Withdrawal {
  readonly id: string;
  readonly by: string;
}

/** An event that stands in a log. */
export interface Known {
  readonly kind: "known";
  readonly tenant: TenantState;
  readonly id: string;
  domain: Domain;
  seq: number;
  at: Instant;
  type: string;
  source: string;
  createdAt: Instant;
  digest: string;
  links: readonly Link[];
  /** `source_trust` as its sender says. */
  trust: string | undefined;
  /** The key whose signature was verified when it arrived. */
  signedBy: string | undefined;
  /** It named its tenant, so derived events do (spec 9.9). */
  namesTenant: boolean;
  /** Two logs, or one log at two times, hold different events under this id. */
  isAmbiguous: boolean;
  /** What it asserts something about (spec 6.1). */
  key: string | undefined;
  isLive: boolean;
  withdrawn: Withdrawal | undefined;
  /** By each source that took it back while it asserted nothing: a claim may yet take its place. */
  takenBack: Map<string, Withdrawal> | undefined;
  /** The event that told that its evidence is lost. */
  truncated: string | undefined;
  /** Live assertions that rest on it, and its place among those of its log. */
  citedBy: Set<Known> | undefined;
  citation: Citation | undefined;
  /** The oldest first. */
  attestations: Attestation[] | undefined;
  /** From when on it is remembered for the retention; its place among those that are forgotten in the end. */
  due: Instant;
  order: number;
  index: number;
  /** The same among those of its tenant. */
  place: Place | undefined;
}

/** An event among those of its tenant that may be forgotten, by when it came or ended. */
export interface Place {
  readonly due: Instant;
  readonly order: number;
  index: number;
  readonly event: Known;
}

/** An event that somebody names and that no log has shown yet. */
export interface Missing {
  readonly kind: "missing";
  readonly tenant: TenantState;
  readonly id: string;
  readonly citedBy: Set<Known>;
  /** Attestations that wait for it. */
  readonly waits: Set<Wait>;
  /** By each source that took it back before it came; remembered for a while. */
  readonly withdrawn: Map<string, Withdrawal>;
  due: Instant;
  order: number;
  index: number;
}

/** Evidence of live assertions, by its position in its log. */
export interface Citation {
  readonly due: number;
  readonly order: number;
  index: number;
  readonly event: Known;
}

/** A begun plan: an attestation of an event that was not seen yet. */
export interface Wait {
  /** When it is refused. */
  readonly due: Instant;
  readonly order: number;
  index: number;
  /** Id of the attestation. */
  readonly id: string;
  readonly tenant: TenantState;
  readonly envelope: Envelope;
  /** What it waits for. */
  readonly of: string;
  /** The key that signed it, where that was verified. */
  readonly signedBy: string | undefined;
  revoked: Revocation | undefined;
  isSeen: boolean;
}

/** Where a log begins, and what live assertions rest on in it. */
export interface LogState {
  first: number;
  firstAt: Instant;
  readonly cited: Heap<Citation>;
}

export interface TenantState {
  readonly name: string;
  readonly events: Map<string, Known>;
  readonly missing: Map<string, Missing>;
  /** Live assertions by subject and source (spec 6.1). */
  readonly subjects: Map<string, Map<string, Known>>;
  readonly attestations: Map<string, Attestation>;
  readonly waits: Map<string, Wait>;
  /** What may be forgotten of it. */
  readonly over: Heap<Place>;
  /** Its events and links that are remembered. */
  weight: number;
}

export interface AttesterState {
  readonly sessions: SessionBook;
  readonly tenants: Map<string, TenantState>;
  readonly logs: Map<Domain, LogState>;
  /** Attestations that wait, by when they are refused. */
  readonly waiting: Heap<Wait>;
  /** Those whose event was seen, the oldest first. */
  readonly ready: Heap<Wait>;
  /** Pushed out of memory while live assertions rest on them. */
  readonly leaving: Map<Known, Instant>;
  /** What may be forgotten, by when it came or ended. */
  readonly over: Heap<Known>;
  /** What was taken back and has not come. */
  readonly early: Heap<Missing>;
  /** Events and links remembered, of all tenants. */
  weight: number;
  /** Events seen since the last entry of the own log. */
  news: number;
}

/** Of two events under one id in two logs the one of the first of these is kept. */
export const DOMAINS: readonly Domain[] = ["beliefs", "tasks", "interruptions", "provenance"];

/** A number for a place in a log, another one for each place in each log. */
export function placeOf(domain: Domain, seq: number): number {
  return seq * DOMAINS.length + DOMAINS.indexOf(domain);
}

export function createState({ retentionMs }: AttesterSettings): AttesterState {
  return {
    sessions: createSessionBook({ retentionMs }),
    tenants: new Map(),
    logs: new Map(),
    waiting: new Heap(),
    ready: new Heap(),
    leaving: new Map(),
    over: new Heap(),
    early: new Heap(),
    weight: 0,
    news: 0,
  };
}

export function openTenant(state: AttesterState, name: string): TenantState {
  let tenant = state.tenants.get(name);
  if (tenant === undefined) {
    tenant = {
      name,
      events: new Map(),
      missing: new Map(),
      subjects: new Map(),
      attestations: new Map(),
      waits: new Map(),
      over: new Heap(),
      weight: 0,
    };
    state.tenants.set(name, tenant);
  }
  return tenant;
}

export function openMissing(tenant: TenantState, id: string): Missing {
  let missing = tenant.missing.get(id);
  if (missing === undefined) {
    missing = {
      kind: "missing",
      tenant,
      id,
      citedBy: new Set(),
      waits: new Set(),
      withdrawn: new Map(),
      due: 0,
      order: 0,
      index: -1,
    };
    tenant.missing.set(id, missing);
  }
  return missing;
}

/** Nothing speaks of it any more. */
export function closeMissing(missing: Missing): void {
  const { citedBy, waits, withdrawn, tenant, id } = missing;
  if (citedBy.size + waits.size + withdrawn.size > 0) return;
  if (tenant.missing.get(id) === missing) tenant.missing.delete(id);
}

export function closeTenant(state: AttesterState, tenant: TenantState): void {
  const { name, events, missing, waits } = tenant;
  if (events.size + missing.size + waits.size > 0) return;
  if (state.tenants.get(name) === tenant) state.tenants.delete(name);
}

export function openLog(state: AttesterState, domain: Domain): LogState {
  let log = state.logs.get(domain);
  if (log === undefined) {
    log = { first: 1, firstAt: 0, cited: new Heap() };
    state.logs.set(domain, log);
  }
  return log;
}

/** Whether its log holds it no longer, or memory is about to. */
export function isLost(state: AttesterState, event: Known): boolean {
  return event.seq < (state.logs.get(event.domain)?.first ?? 1) || state.leaving.has(event);
}

/** Sources other than its own that vouch for it and have not taken that back (spec section 8). */
export function vouchersOf({ attestations = [], source }: Known): Set<string> {
  const sources = new Set<string>();
  for (const attestation of attestations) {
    if (attestation.revoked === undefined && attestation.source !== source) {
      sources.add(attestation.source);
    }
  }
  return sources;
}
