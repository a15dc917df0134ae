/** The streams of this system (architecture, section 3). */
import type { Domain } from "@harmovela/envelope";
import type { BlobInfo, StreamSpec } from "./port.ts";
import { encodeToken } from "./tokens.ts";

export interface StreamOptions {
  /** Default 1. */
  replicas?: number;
  /** Default: an operator's to choose; none at first. */
  maxBytes?: number;
}

/**
 * Room for an envelope of 512 KiB with the stamps and headers of its entry, or held whole inside a
 * control entry; still below the server's default largest message of 1 MiB.
 */
export const MESSAGE_BYTES_MAX = 640 * 1024;

const INTAKE_MAX_AGE_MS = 7 * 24 * 60 * 60 * 1000;

export function intakeStream(domain: Domain): string {
  return `HV_IN_${domain.toUpperCase()}`;
}

export function logStream(domain: Domain): string {
  return `HV_LOG_${domain.toUpperCase()}`;
}

/** What was asked of a domain; kept for seven days. */
export function intakeStreamSpec(domain: Domain, options: StreamOptions = {}): StreamSpec {
  return {
    name: intakeStream(domain),
    subjects: [`hv.*.in.${domain}.>`],
    maxAgeMs: INTAKE_MAX_AGE_MS,
    ...(options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes }),
    maxMessageBytes: MESSAGE_BYTES_MAX,
    replicas: options.replicas ?? 1,
  };
}

/** What is true in a domain; has no age limit, its service trims it. */
export function logStreamSpec(domain: Domain, options: StreamOptions = {}): StreamSpec {
  return {
    name: logStream(domain),
    subjects: [`hv.*.log.${domain}.>`, `hv.*.ctl.${domain}.>`],
    maxAgeMs: 0,
    ...(options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes }),
    maxMessageBytes: MESSAGE_BYTES_MAX,
    replicas: options.replicas ?? 1,
    republish: { src: `hv.*.log.${domain}.>`, dest: `hv.{{wildcard(1)}}.ev.${domain}.>` },
  };
}

/** Who was allowed or refused what; seen by operators alone. */
export const AUDIT_STREAM = "HV_AUDIT";
/** How long it keeps records unless told otherwise. */
export const AUDIT_MAX_AGE_MS: number = 90 * 24 * 60 * 60 * 1000;
/** Room for it unless told otherwise: some four million decisions. */
export const AUDIT_MAX_BYTES: number = 1024 * 1024 * 1024;

/** Nothing in it is changed or removed by anybody; the oldest goes by age, or when there is no more room. */
export function auditStreamSpec(options: StreamOptions & { maxAgeMs?: number } = {}): StreamSpec {
  return {
    name: AUDIT_STREAM,
    subjects: ["hv.*.audit.>"],
    maxAgeMs: options.maxAgeMs ?? AUDIT_MAX_AGE_MS,
    maxBytes: options.maxBytes ?? AUDIT_MAX_BYTES,
    maxMessageBytes: MESSAGE_BYTES_MAX,
    replicas: options.replicas ?? 1,
    discard: "old",
    denyPurge: true,
  };
}

/** Where snapshots are kept. */
export const BLOB_BUCKET = "HV_SNAPSHOTS";

/** Where agents keep what they go on from. */
export const CHECKPOINT_BUCKET = "HV_CHECKPOINTS";

/** Of a checkpoint in that bucket. Tokens have no dots, so no two share a name. */
export function checkpointName(tenant: string, taskId: string, checkpointId: string): string {
  return `${checkpointPrefix(tenant, taskId)}${encodeToken(checkpointId)}`;
}

/** What the names of all checkpoints of a task begin with. */
export function checkpointPrefix(tenant: string, taskId: string): string {
  return `${encodeToken(tenant)}.${encodeToken(taskId)}.`;
}

/** Room for checkpoints unless the service is told otherwise: 128 of the largest. */
export const CHECKPOINT_STORE_BYTES: number = 1024 * 1024 * 1024;

/** Largest checkpoint that the store takes: larger state belongs into a store of its own, named by its location. */
export const CHECKPOINT_BYTES_MAX: number = 8 * 1024 * 1024;

/** What is noted about a blob, as JSON: it travels in one message with the blob's name. */
export const BLOB_NOTES_MAX = 8_192;

export function blobInfo(
  name: string,
  bytes: number,
  notes: Readonly<Record<string, string>> = {},
): BlobInfo {
  return { name, bytes, notes };
}
