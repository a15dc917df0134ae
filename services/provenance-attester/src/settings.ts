import { type ProofSettings, SIGNATURE_AGE_MS } from "@harmovela/envelope";

/** What the rules of the domain read; every value is recorded in the log with the leadership. */
export interface AttesterSettings extends ProofSettings {
  defaultProfiles: string[];
  /** How long an attestation waits for the event that it speaks of, milliseconds. */
  evidenceWaitMs: number;
  /** Who writes the log of `beliefs`: what it says by itself claims nothing. */
  beliefTracker: string;
  /** Who may revoke attestations of others, and tell of truncations. */
  authorities: string[];
  /** Independent attestations without which nothing irreversible rests on an unverified event. */
  attestationsNeeded: number;
  /** Attestations of one event that are kept. */
  attestationsMax: number;
  /** Attestations of one tenant that may wait at the same time. */
  waitingMax: number;
  /** Events and links between them that are remembered, all tenants together (the largest gives way); a thousand take about half a megabyte. */
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
  beliefTracker: "service:belief-tracker",
  authorities: [],
  attestationsNeeded: 1,
  signatureAgeMs: SIGNATURE_AGE_MS,
  attestationsMax: 1_000,
  waitingMax: 10_000,
  rememberedMax: 1_000_000,
  retentionMs: 30 * 86_400_000,
  service: "service:provenance-attester",
};

/** Longest text of an attestation kept in state or repeated in an answer, UTF-16 units. */
export const TEXT_LENGTH_MAX = 200;
/** Events that are looked at on arrival to find out whether a lineage comes back to where it began: every attestation pays for it. */
export const CYCLE_EVENTS_MAX = 64;
