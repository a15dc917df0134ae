import type { SessionSettings } from "@harmovela/envelope";

/** What the rules of the domain read; every value is recorded in the log with the leadership. */
export interface AttesterSettings extends SessionSettings {
  defaultProfiles: string[];
  /** Senders are proved by the connection; then only services may speak as `harness:*`. */
  authenticated: boolean;
  /** How long an attestation waits for the event that it speaks of, milliseconds. */
  evidenceWaitMs: number;
  /** Who may revoke attestations of others, and tell of truncations. */
  authorities: string[];
  /** Independent attestations without which nothing irreversible rests on an unverified event. */
  attestationsNeeded: number;
  /** How old a signed envelope may be when it arrives, milliseconds. */
  signatureAgeMs: number;
  /** Attestations of one event that are kept. */
  attestationsMax: number;
  /** Attestations of one tenant that may wait at the same time. */
  waitingMax: number;
  /** Events and links between them that are remembered, all tenants together; a thousand take about half a megabyte. */
  rememberedMax: number;
  /** How long an event is remembered on which nothing that lives rests. */
  retentionMs: number;
  /** The identity under which the service writes derived events. */
  service: string;
}

export const DEFAULT_ATTESTER_SETTINGS: AttesterSettings = {
  authenticated: false,
  strictSessions: false,
  defaultProfiles: [],
  evidenceWaitMs: 30_000,
  authorities: [],
  attestationsNeeded: 1,
  signatureAgeMs: 600_000,
  attestationsMax: 1_000,
  waitingMax: 10_000,
  rememberedMax: 1_000_000,
  retentionMs: 30 * 86_400_000,
  service: "service:provenance-attester",
};

/** Clocks of agents may differ by as much (spec 7, check 6). */
export const SKEW_MS = 60_000;
/** Longest text of an attestation kept in state or repeated in an answer, UTF-16 units. */
export const TEXT_LENGTH_MAX = 200;
/** Events that are looked at on arrival to find out whether a lineage comes back to where it began: every attestation pays for it. */
export const CYCLE_EVENTS_MAX = 64;
