/**
 * State of the domain `beliefs`: a fold of its log; for sessions also of that of `tasks`, for lost
 * evidence of that of `provenance`.
 *
 * 1. A claim is what one source says about one subject. Who says it again updates it; what was
 *    withdrawn or marked is never changed any more: saying it again makes another claim.
 * 2. Ids and subjects come from agents, so tables are Maps.
 * 3. Edges are kept at both ends: `restsOn` of the one, `dependents` of the other.
 * 4. What a walk has passed only orders the work; whom it still has to mark follows from the edges.
 */
import {
  createSessionBook,
  type Envelope,
  Fifo,
  Heap,
  type Instant,
  Ring,
  type SessionBook,
  type Spoken,
} from "@harmovela/envelope";
import type { BeliefSettings } from "./settings.ts";

/** Why something is no longer to be relied on. */
export interface Withdrawal {
  /** Id of the event that says so, and who sent it. */
  readonly id: string;
  readonly by: string;
  readonly at: Instant;
  /** What rests on it must be evaluated again (spec 6.1). */
  readonly isRetraction: boolean;
  /** Nobody has taken it back: it can no longer be had (spec section 8), until it comes after all. */
  readonly isLoss: boolean;
  readonly reason: string | undefined;
}

/** A conclusion that rests on what was retracted (spec 6.1). */
export interface Mark {
  readonly id: string;
  readonly retraction: string;
  /** What was retracted. */
  readonly key: string;
  /** The events between, one step down: what this claim rests on. */
  readonly dependsOn: string;
  readonly at: Instant;
}

/** An event that somebody cites and that is no claim of this tenant (yet). */
export interface Evidence {
  readonly kind: "evidence";
  readonly id: string;
  readonly dependents: Set<Claim>;
  /** The newest word on that. */
  withdrawn: Withdrawal | undefined;
  /** By each source that took it back before it came. */
  readonly takenBack: Map<string, Withdrawal>;
}

export interface Claim {
  readonly kind: "claim";
  readonly subject: Subject;
  readonly source: string;
  /** The newest event that says it, and where it is logged. */
  event: string;
  seq: number;
  at: Instant;
  createdAt: Instant;
  /** The value as canonical JSON; undefined when the event names none. */
  text: string | undefined;
  status: string | undefined;
  scope: string | undefined;
  confidence: number | undefined;
  trust: string | undefined;
  refreshHint: string | undefined;
  /** It named its tenant, so derived events do (spec 9.9). */
  namesTenant: boolean;
  validFrom: Instant;
  validUntil: Instant | undefined;
  /** `created_at` and `stale_after` added. */
  staleAt: Instant | undefined;
  window: Window | undefined;
  change: WindowChange | undefined;
  restsOn: readonly (Claim | Evidence)[];
  dependents: Set<Claim> | undefined;
  withdrawn: Withdrawal | undefined;
  mark: Mark | undefined;
  /** The mark that is owed: everything below it is marked by the same duty or walk. */
  due: { readonly id: string; readonly because: Fallen } | undefined;
  /** What has taken its place when it was withdrawn. */
  replacedBy: Node | undefined;
  /** The revision that decided a conflict against it (spec 6.1). */
  overruledBy: string | undefined;
  /** It is over and forgotten as soon as nothing rests on it. */
  isForgotten: boolean;
}

export type Node = Claim | Evidence;

/** When a claim stops being fresh (spec 6.2). */
export interface Window {
  /** When that is noticed: its end, or its arrival when that is later. */
  readonly due: Instant;
  readonly order: number;
  index: number;
  readonly claim: Claim;
  readonly end: Instant;
  /** The event that set it. */
  readonly setBy: string;
}

/** The newest decision about the window of a claim (spec 6.2). */
export interface WindowChange {
  readonly id: string;
  readonly createdAt: Instant;
  readonly flags: readonly string[];
}

/** A conflict that is logged (spec 6.1). */
export interface Conflict {
  readonly id: string;
  readonly at: Instant;
  /** Value by source, as logged; claims that left it since are gone. */
  contested: ReadonlyMap<string, string>;
}

export interface Resolution {
  readonly conflict: string;
  /** The event that ended it. */
  readonly by: string;
  readonly at: Instant;
}

/** What somebody else has reported as a conflict. */
export interface Report {
  readonly id: string;
  readonly by: string;
  readonly at: Instant;
}

export interface Subject {
  readonly key: string;
  readonly tenant: TenantState;
  /** Live claims by source. */
  readonly claims: Map<string, Claim>;
  /** The last claim of a source that is over and still remembered; few subjects have one. */
  past: Map<string, Claim> | undefined;
  /** Claims that are over and still remembered. */
  remembered: number;
  conflict: Conflict | undefined;
  resolved: Resolution | undefined;
  report: Report | undefined;
  /** Ends of windows whose expiry is logged, the newest last; a bounded number. */
  told: readonly Instant[];
  /** Id of the duty to log a conflict, or its end. */
  duty: string | undefined;
}

/** What the service owes at once; an entry of the log takes it away. */
export type Duty = {
  readonly id: string;
  readonly tenant: TenantState;
  readonly at: Instant;
  /** The event from which it follows. */
  readonly cause: string;
  readonly namesTenant: boolean;
} & (
  | {
      readonly kind: "conflict";
      readonly subject: Subject;
      readonly contested: ReadonlyMap<string, string>;
    }
  | { readonly kind: "resolution"; readonly subject: Subject; readonly conflict: Conflict }
  | { readonly kind: "mark"; readonly claim: Claim; readonly because: Fallen }
);

/** What a conclusion rests on that no longer stands. */
export interface Fallen {
  readonly retraction: string;
  readonly key: string;
  readonly dependsOn: string;
}

/** A begun plan: it marks what rests on the roots, one by one (architecture, section 2). */
export interface Walk {
  readonly kind: "walk";
  /** Of the event that ends it. */
  readonly id: string;
  readonly tenant: TenantState;
  readonly envelope: Envelope;
  /** Of a late mark: the claim that its last event marks. */
  readonly claim: Claim | undefined;
  readonly retraction: string;
  readonly key: string;
  readonly at: Instant;
  /** What was reached and not looked below yet. */
  readonly queue: Fifo<Node>;
  readonly seen: Set<Node>;
  /** What is being looked below, what rests on it, and how far that is worked off. */
  current: Node | undefined;
  below: Claim[];
  place: number;
  ringNext: Work | undefined;
  ringPrev: Work | undefined;
}

/** Evidence that was lost: it owes marks, one by one (spec section 8). */
export interface Loss {
  readonly kind: "loss";
  /** Derived: what causes its marks. */
  readonly id: string;
  readonly tenant: TenantState;
  readonly at: Instant;
  /** Claims that rest on it and are not marked yet; each is `due` because of it. */
  readonly left: Fifo<Claim>;
  ringNext: Work | undefined;
  ringPrev: Work | undefined;
}

/** What is worked off one step at a time, in turns. */
export type Work = Walk | Loss;

export interface TenantState {
  readonly name: string;
  readonly subjects: Map<string, Subject>;
  /** What an event id stands for. */
  readonly events: Map<string, Node>;
  /** Conflicts that are open, by the id of the event that tells of them. */
  readonly conflicts: Map<string, Subject>;
  readonly walks: Map<string, Walk>;
  readonly losses: Map<string, Loss>;
  /** Live claims whose expiry is logged, longest stale first. */
  readonly stale: Set<Claim>;
}

/** `event`: an id under which a claim is known no longer as the newest. */
export type Over = { readonly at: Instant; readonly tenant: TenantState } & (
  | { readonly kind: "claim"; readonly claim: Claim }
  | { readonly kind: "event"; readonly id: string; readonly claim: Claim }
  | { readonly kind: "evidence"; readonly evidence: Evidence }
  | { readonly kind: "report"; readonly subject: Subject; readonly report: Report }
);

export interface BeliefState {
  readonly sessions: SessionBook;
  readonly tenants: Map<string, TenantState>;
  readonly windows: Heap<Window>;
  /** By tenant and id of the event that is owed; the oldest first. */
  readonly duties: Map<string, Duty>;
  readonly ring: Ring<Work>;
  /** What is remembered for a while, in the order in which it ended. */
  readonly over: Fifo<Over>;
  /** Windows made so far; it orders what is due at the same time. */
  count: number;
}

export function createState({ retentionMs }: BeliefSettings): BeliefState {
  return {
    sessions: createSessionBook({ retentionMs }),
    tenants: new Map(),
    windows: new Heap(),
    duties: new Map(),
    ring: new Ring(),
    over: new Fifo(),
    count: 0,
  };
}

/** What an event id was said of, where it is a claim. */
export function spokenBy(node: Node | undefined): Spoken | undefined {
  return node?.kind === "claim" ? { source: node.source, key: node.subject.key } : undefined;
}

export function openTenant(state: BeliefState, name: string): TenantState {
  let tenant = state.tenants.get(name);
  if (tenant === undefined) {
    tenant = {
      name,
      subjects: new Map(),
      events: new Map(),
      conflicts: new Map(),
      walks: new Map(),
      losses: new Map(),
      stale: new Set(),
    };
    state.tenants.set(name, tenant);
  }
  return tenant;
}

export function openSubject(tenant: TenantState, key: string): Subject {
  let subject = tenant.subjects.get(key);
  if (subject === undefined) {
    subject = {
      key,
      tenant,
      claims: new Map(),
      past: undefined,
      remembered: 0,
      told: [],
      conflict: undefined,
      resolved: undefined,
      report: undefined,
      duty: undefined,
    };
    tenant.subjects.set(key, subject);
  }
  return subject;
}

export function isLive(claim: Claim): boolean {
  return claim.subject.claims.get(claim.source) === claim;
}

export function isStale(claim: Claim, now: Instant): boolean {
  return claim.window !== undefined && now >= claim.window.end;
}
