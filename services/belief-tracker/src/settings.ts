import { type ProofSettings, SIGNATURE_AGE_MS } from "@harmovela/envelope";

/** What the rules of the domain read; every value is recorded in the log with the leadership. */
export interface BeliefSettings extends ProofSettings {
  defaultProfiles: string[];
  /** Agents that may hold a claim on one subject at the same time. */
  sourcesMax: number;
  /** How long what is over is remembered. */
  retentionMs: number;
  /** The identity under which the service writes derived events. */
  service: string;
}

export const DEFAULT_BELIEF_SETTINGS: BeliefSettings = {
  authenticated: false,
  strictSessions: false,
  defaultProfiles: [],
  signatureAgeMs: SIGNATURE_AGE_MS,
  sourcesMax: 1000,
  retentionMs: 30 * 86_400_000,
  service: "service:belief-tracker",
};

/** Longest subject of claims, UTF-16 units: it is repeated in every event about it. */
export const KEY_LENGTH_MAX = 1024;
/** Claims listed in a conflict; the count beside them is exact. */
export const LISTED_CLAIMS_MAX = 20;
/**
 * Ends of windows on one subject of which it is remembered that they were told: whoever repeats what has
 * ended long ago repeats one of the last few.
 */
export const TOLD_ENDS_MAX = 16;
/** Longest value quoted in a derived event, UTF-16 units of its JSON. */
export const QUOTED_LENGTH_MAX = 2048;
/** Longest reason kept in state or copied into a derived event, UTF-16 units. */
export const REASON_LENGTH_MAX = 200;
