/**
 * The vocabulary between the host and a decider (architecture, section 2). Types only: a decider is
 * pure, takes time and identity from its input, and changes state in `evolve` alone.
 */
import type { ErrorPayload, JsonObject } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";

/** Milliseconds since the epoch on the broker's clock. */
export type Instant = number;

/** One service owns one domain and is the only writer of its log (architecture, section 3). */
export type Domain = "tasks" | "beliefs" | "interruptions" | "provenance";

/** What made an entry: an intake message, or an obligation of the service itself (header `Hv-Cause`). */
export type Cause = { in: number } | { owed: string };

/** What every stored entry of a log says about itself. */
export interface EntryFrame {
  /** Position in the log stream. */
  seq: number;
  tenant: string;
  cause: Cause;
  /** Broker time at which it was decided (header `Hv-At`). */
  at: Instant;
  /** The leadership under which it was written (header `Hv-Epoch`). */
  epoch: number;
  /** Position of the entry that its writer had written or folded before it, 0 for none (header `Hv-Prev`). */
  prev: number;
  /** Position up to which each observed log had been folded (header `Hv-Seen`). */
  seen: Readonly<Partial<Record<Domain, number>>>;
  /**
   * SHA-256 of the sent envelope in canonical form, where the entry does not hold it as it was sent
   * (header `Hv-Digest`): refusals that occupy their id, plans, envelopes with fields filled in.
   */
  digest?: string;
  /** Further fields of the verdict, so that a repeated envelope gets the same one (header `Hv-Verdict`). */
  verdict?: JsonObject;
  /**
   * Of a refusal: what the refused envelope says of itself, which its refusal does not repeat (header
   * `Hv-About`). For the record of who was refused what; nothing is decided by it.
   */
  about?: { type?: string; target?: string; actor?: string };
}

/** An accepted, derived or refusing event: everything observers see. */
export interface EventEntry extends EntryFrame {
  kind: "event";
  envelope: Envelope;
}

/** A decision whose own event can only be logged later (architecture, section 2, `begin`). */
export interface BegunEntry extends EntryFrame {
  kind: "begun";
  plan: Plan;
}

/** An obligation that could not be met; it is settled with an alarm so that the world goes on. */
export interface ObligationFailedEntry extends EntryFrame {
  kind: "obligation_failed";
  id: string;
  reason: string;
}

/** What an issued handoff token says (spec 7), as numbers of seconds where it speaks of time. */
export interface TokenIssue {
  jti: string;
  /** Names and ids are the same in many tenants: in another one it proves nothing. */
  tenant: string;
  /** Who gives the task away, and to whom. */
  iss: string;
  sub: string;
  task_id: string;
  parent_task_id?: string;
  iat: number;
  exp: number;
}

/** A handoff token was issued: what it says, never the token. */
export interface TokenIssuedEntry extends EntryFrame {
  kind: "token_issued";
  body: TokenIssue;
}

/**
 * How far the observed logs are folded (`seen` of the frame), so that the fold gets on when nothing else is
 * logged, and `first`: which logs have lost their beginning since that was last told, and the position
 * that each still begins with. Written by a host whose decider asks for it (`Decider.firstKnown`).
 */
export interface ObservedEntry extends EntryFrame {
  kind: "observed";
  first: Readonly<Partial<Record<Domain, number>>>;
}

/** Entries of the host; a decider never sees them. */
export interface HostEntry extends EntryFrame {
  kind: "epoch" | "position" | "refused" | "intake_gap" | "skipped";
  body: JsonObject;
}

export type DomainEntry =
  | EventEntry
  | BegunEntry
  | ObligationFailedEntry
  | TokenIssuedEntry
  | ObservedEntry;
export type LogEntry = DomainEntry | HostEntry;

/**
 * The content of a `begun` control entry. `id` names the plan (for an envelope of an agent: that
 * envelope's id; for a timer: the derived id of the event that the timer owes). `envelope` is the
 * event that ends the plan, exactly as it will be logged, without delivery stamps.
 */
export interface Plan {
  id: string;
  kind: string;
  envelope: Envelope;
  data?: JsonObject;
}

/**
 * What the host found out about a handoff token before the decision (spec 7): who made it, never
 * what it is worth. `opaque`: nobody here can see inside. `forged`: it names a key of ours, which
 * did not sign it. `verified`: signed by a key of ours.
 */
export type TokenFacts =
  | { kind: "opaque" }
  | { kind: "forged" }
  | { kind: "verified"; claims: JsonObject };

/**
 * What the host found out about the signature of an envelope before the decision (spec section 8): whose
 * key made it, and when that key is good. `malformed`: no detached JWS. `unknown_key`: the registry
 * has no such key of this sender. `forged`: that key did not sign this envelope.
 */
export type SignatureFacts =
  | { kind: "malformed" }
  | { kind: "unknown_key"; kid: string }
  | { kind: "forged"; kid: string }
  | { kind: "verified"; kid: string; from: Instant; until?: Instant; revokedAt?: Instant };

/** What the connection of a sender may do, as the registry of grants had it when the host looked (spec 9.7, 9.8). */
export interface Grants {
  roles: readonly string[];
  /** Absent: everything of its tenant. */
  scopes?: readonly string[];
}

/** A validated envelope in the order of the intake. */
export interface Judged {
  envelope: Envelope;
  tenant: string;
  /** The sender, as the subject says. */
  source: string;
  /** Intake position. */
  intake: number;
  /** Of `envelope.handoff_token`, when there is one and the host has keys. */
  token?: TokenFacts;
  /** Of the signature that the envelope carries, when there is one and the host has a key registry. */
  signature?: SignatureFacts;
  /** Where the connection proves who speaks, and it is no service; then what the body says of it is a claim. */
  grants?: Grants;
}

export interface DecideContext {
  /** Store time of the intake message, never below the time of the last entry. */
  now: Instant;
  /**
   * A name for something that this decision makes: same tenant, cause and index, same id
   * (architecture, section 2). Agents may not use ids of this form.
   */
  deriveId(index: string): string;
}

export type RejectionType =
  | "event.rejected"
  | "command.rejected"
  | "query.rejected"
  | "subscription.rejected";

/**
 * `accept`: the input's own envelope, or a copy with fields filled in. `duplicate`: already settled
 * by the entry at this log position. `verdict`: further fields for the acknowledgement's payload.
 * `late`: what the sender goes on working at although it has ended or is stopped; operators hear of it.
 */
export type Decision =
  | { accept: Envelope; verdict?: JsonObject }
  | { begin: Plan; verdict?: JsonObject }
  | { reject: ErrorPayload; as?: RejectionType; late?: string }
  | { duplicate: { seq: number; outcome?: JsonObject } }
  | { ignore: string };

/** When sessions were last heard under this leadership (spec 5.1): memory of the leader, never state. */
export interface Heartbeats {
  /** When this leadership began to listen to a tenant: nobody is missed before a full window after it. */
  sinceOf(tenant: string): Instant;
  /** The last sign of life of a session, given by its own initiator. */
  lastHeard(tenant: string, source: string, sessionId: string): Instant | undefined;
}

/** Ids of derived events whose requests or appends are not acknowledged yet. */
export interface UnderWay {
  requests: ReadonlySet<string>;
  /** Absent where nobody listens; then no session is ever missed. */
  heartbeats?: Heartbeats;
}

/**
 * The next thing the service must do by itself. `urgency` "timer": due by time; "step": one of many,
 * as of a begun plan (the host takes at most 64 of them in one turn). `due`: the instant from
 * which it was owed (for a step: 0). `event.id` is derived. `cause` names what it is owed by
 * (a plan id, a timer's id): it becomes `Hv-Cause: owed:<cause>`. `refuses`: the plan ends in a refusal
 * of this envelope, and `event` is that refusal: whoever sends the envelope again gets it.
 */
export type Owed =
  | {
      event: Envelope;
      tenant: string;
      cause: string;
      urgency: "timer" | "step";
      due: Instant;
      refuses?: Envelope;
    }
  | { begin: Plan; tenant: string; cause: string; urgency: "timer" | "step"; due: Instant }
  | { request: Envelope; tenant: string; cause: string; to: Domain }
  | { wakeAt: Instant };

/** How a state is written down and read back (architecture, section 6). */
export interface SnapshotSpec<State> {
  /** Raised whenever the state's form changes: a snapshot of another version is not used. */
  version: number;
  /** Classes whose instances are part of the state, by a name that stays; they have no private (`#`) members. */
  classes: Readonly<Record<string, abstract new (...args: never[]) => object>>;
  /** Settings that the state holds are those in force now, not those of the time of the snapshot. */
  adopt?(state: State): void;
}

export interface Decider<State> {
  initial(): State;
  /** Pure; total on validated envelopes. */
  decide(state: State, input: Judged, ctx: DecideContext): Decision;
  /** The only place that changes state. Total on every entry ever written. */
  evolve(state: State, entry: DomainEntry): void;
  /** Fold of another domain's log. */
  observe?(state: State, domain: Domain, entry: DomainEntry): void;
  /**
   * The next obligation due at `now`, timers by due time before plan steps; or when to look again;
   * or nothing. Changes no state that matters: asked twice it answers the same. O(log n).
   */
  owed(state: State, now: Instant, underWay: UnderWay): Owed | undefined;
  /**
   * The state is a graph of plain objects, arrays, Maps, Sets and these classes. Without it no
   * snapshot is taken and the log is never trimmed.
   */
  snapshots?: SnapshotSpec<State>;
  /**
   * The first positions of logs that the state knows of. Where it is given, the host writes an `observed`
   * entry now and then: after many entries of observed logs, and when a log has lost its beginning.
   */
  firstKnown?(state: State): Readonly<Partial<Record<Domain, number>>>;
  /** Whether signs of life of this session matter, when `source` gives them (spec 5.1). */
  watches?(state: State, tenant: string, source: string, sessionId: string): boolean;
}
