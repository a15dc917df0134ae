import { isObject } from "../record.ts";
import { defaultSettings, type Settings } from "../settings.ts";

/** What the rules of `provenance` read besides. */
export interface ProvenanceSettings extends Settings {
  /** How long an attestation waits for the event that it speaks of, ms. */
  evidenceWaitMs: number;
  /** Who revokes attestations of others. */
  authorities: readonly string[];
  /** Events and links between them that the service keeps, all tenants together. */
  rememberedMax: number;
}

export function defaultProvenanceSettings(): ProvenanceSettings {
  return {
    ...defaultSettings(),
    evidenceWaitMs: 30_000,
    authorities: [],
    rememberedMax: 1_000_000,
  };
}

/** Takes over what an `epoch` entry records; what it does not say stays as it was. */
export function readProvenanceSettings(settings: ProvenanceSettings, recorded: unknown): void {
  if (!isObject(recorded)) return;
  const { evidenceWaitMs, authorities, rememberedMax } = recorded;
  if (typeof evidenceWaitMs === "number") settings.evidenceWaitMs = evidenceWaitMs;
  if (typeof rememberedMax === "number") settings.rememberedMax = rememberedMax;
  if (Array.isArray(authorities)) {
    settings.authorities = authorities.filter((name) => typeof name === "string");
  }
}
