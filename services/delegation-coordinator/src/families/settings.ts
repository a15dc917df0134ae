import { SIGNATURE_AGE_MS } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

/** What the rules of sessions, subscriptions, exchanges and budgets read; recorded with the leadership. */
export interface FamilySettings {
  /** Senders are proved by the connection; then only services may speak as `harness:*`. */
  authenticated: boolean;
  /**
   * One process speaks for everybody and is known by that (spec 9.6, stdio): what it says of names and
   * roles is its own word, and profiles that stand on identity can be negotiated.
   */
  processIdentity: boolean;
  /** Refuse events of sessions that nobody opened (spec 5.1). */
  strictSessions: boolean;
  /** Profiles in force for events that name no session, or one that nobody opened. */
  defaultProfiles: string[];
  /** How old a signed envelope may be when it arrives, ms. */
  signatureAgeMs: number;
  /** Profiles offered to sessions, where what they stand on is offered too (spec 4.3). */
  profiles: string[];
  /** A shorter heartbeat interval than this is raised to it. */
  heartbeatMinMs: number;
  /** For commands and queries that name no window (spec 5.9). */
  negotiationWindowMs: number;
  /** Live subscriptions of one agent in one session, or outside sessions. */
  subscriptionsMax: number;
  /** How long what is over, or what nobody uses, is remembered. */
  retentionMs: number;
  /** The service's own L1 policy: `budget`, `timeouts`, `allowed_actions`, `termination` (spec 4.3). */
  policy: JsonObject;
}

export const DEFAULT_FAMILY_SETTINGS: FamilySettings = {
  authenticated: false,
  processIdentity: false,
  strictSessions: false,
  defaultProfiles: [],
  signatureAgeMs: SIGNATURE_AGE_MS,
  profiles: [
    "harmovela.core.v1",
    "harmovela.runtime-semantics.v1",
    "harmovela.security.v1",
    "harmovela.coordination.v1",
    "harmovela.adaptation.v1",
    "harmovela.transport.nats.v1",
    "harmovela.transport.stdio.v1",
  ],
  heartbeatMinMs: 100,
  negotiationWindowMs: 5000,
  subscriptionsMax: 1000,
  retentionMs: 30 * 86_400_000,
  policy: {},
};
