import { type Instant, type ProofSettings, SIGNATURE_AGE_MS } from "@harmovela/envelope";

/** What the rules of the domain read; every value is recorded in the log with the leadership. */
export interface ManagerSettings extends ProofSettings {
  defaultProfiles: string[];
  /** Tasks that nobody submitted here may be interrupted and compensated, by anybody (section 11, C40). */
  externalTasks: boolean;
  /**
   * What follows when nothing was saved in time: the task is stopped by force, and under "fail" it
   * fails (section 11, C10).
   */
  onGraceExpired: "fail" | "force_stop";
  /** What becomes of the tasks of a session that was lost; "interrupt" leaves them to this service. */
  orphanedTasks: "fail" | "keep" | "interrupt";
  /** Grace of `save_and_stop` and of `drain_then_stop` where the request names none (spec 5.7). */
  saveGraceMs: number;
  drainGraceMs: number;
  /** How long what is over is remembered. */
  retentionMs: number;
  /** The identity under which the service writes derived events and asks. */
  service: string;
  /** Who answers its requests. */
  coordinator: string;
}

export const DEFAULT_MANAGER_SETTINGS: ManagerSettings = {
  authenticated: false,
  strictSessions: false,
  defaultProfiles: [],
  signatureAgeMs: SIGNATURE_AGE_MS,
  externalTasks: false,
  onGraceExpired: "fail",
  orphanedTasks: "fail",
  saveGraceMs: 5_000,
  drainGraceMs: 60_000,
  retentionMs: 30 * 86_400_000,
  service: "service:interruption-manager",
  coordinator: "service:delegation-coordinator",
};

/** The last instant that RFC 3339 can write; a due time beyond it falls on it. */
export const LAST_INSTANT: Instant = 253_402_300_799_999;

/** Interruptions of a task that are over and still told from the open one. */
export const PAST_MAX = 16;
/** Checkpoints of one task; the oldest gives way. */
export const CHECKPOINTS_MAX = 64;
/** Longest reason that is copied into a derived event or kept, UTF-16 units. */
export const REASON_LENGTH_MAX = 200;
/** Longest description of a compensation that is handed on, UTF-16 units. */
export const DESCRIPTION_LENGTH_MAX = 16_384;
/** Longest place of a checkpoint, UTF-16 units: it is kept for as long as the checkpoint. */
export const LOCATION_LENGTH_MAX = 2_048;
/** Ids listed in refusals and verdicts; a count beside them is exact. */
export const LISTED_MAX = 20;
/** Requests sent and not settled; fewer than the host's own limit, so that none is handed out in vain. */
export const REQUESTS_UNDER_WAY_MAX = 512;
/** Pause after a retryable refusal, doubled each time up to the longest (architecture, section 2). */
export const RETRY_MS_MIN = 1_000;
export const RETRY_MS_MAX = 300_000;
