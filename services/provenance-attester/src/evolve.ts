/** The only place that changes state. Total: what does not fit the state changes nothing. */
import {
  type Domain,
  type DomainEntry,
  type EventEntry,
  evolveSession,
  isClaimed,
  type ObligationFailedEntry,
  payloadText,
} from "@harmovela/envelope";
import { withdrawNamed } from "./assertions.ts";
import { addAttestation, revokeAttestation } from "./attestations.ts";
import { truncatedIdOf } from "./derived.ts";
import { forget } from "./forgetting.ts";
import { namedBy } from "./rules/evidence.ts";
import { see } from "./seen.ts";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, closeTenant, type Wait } from "./state.ts";
import { endLoss, nextLoss, noteFirst } from "./truncation.ts";
import { closeWait, openWait } from "./waits.ts";

export function evolve(state: AttesterState, settings: AttesterSettings, entry: DomainEntry): void {
  forget(state, settings, entry.at);
  switch (entry.kind) {
    case "event":
      evolveEvent(state, entry);
      break;
    case "begun":
      openWait(state, entry, settings.evidenceWaitMs);
      break;
    case "obligation_failed":
      evolveFailed(state, entry);
      break;
    case "observed":
      noteFirst(state, entry);
      break;
    case "token_issued":
      break;
  }
}

/** Entries of other logs: every event may be spoken of, and what rests on it may end. */
export function observe(
  state: AttesterState,
  { beliefTracker }: AttesterSettings,
  domain: Domain,
  entry: DomainEntry,
): void {
  if (domain === "tasks") evolveSession(state.sessions, entry);
  if (entry.kind === "event") {
    // The event that ends a plan takes nothing back: that was so from the plan's beginning on.
    see(state, domain, entry, domain === "beliefs" && isClaimed(entry, beliefTracker));
  } else if (entry.kind === "begun" && domain === "beliefs" && "in" in entry.cause) {
    const { envelope } = entry.plan;
    withdrawNamed(state, entry.tenant, { envelope, at: entry.at, seq: entry.seq });
  }
}

function evolveEvent(state: AttesterState, entry: EventEntry): void {
  const { envelope, tenant: name, at } = entry;
  const wait = endedWait(state, entry);
  if (wait !== undefined) closeWait(state, wait);
  const event = see(state, "provenance", entry);
  if (wait !== undefined && event?.id === wait.id) event.signedBy ??= wait.signedBy;
  const tenant = state.tenants.get(name);
  if (event === undefined || tenant === undefined) {
    if (tenant !== undefined) closeTenant(state, tenant);
    return;
  }
  switch (envelope.type) {
    case "provenance.attestation.added":
      addAttestation(state, entry, wait?.revoked);
      break;
    case "provenance.attestation.revoked":
      revokeAttestation(state, entry);
      break;
    case "provenance.chain.truncated": {
      const assertion = tenant.events.get(namedBy(envelope) ?? "");
      if (assertion !== undefined) endLoss(state, assertion, envelope.id, at);
      break;
    }
  }
}

/** The plan that an entry of the service itself ends: by its own event, or by a refusal of that. */
function endedWait(
  state: AttesterState,
  { cause, envelope, tenant }: EventEntry,
): Wait | undefined {
  if (!("owed" in cause)) return undefined;
  const wait = state.tenants.get(tenant)?.waits.get(cause.owed);
  if (wait === undefined) return undefined;
  const refused = payloadText(envelope, "acknowledged_event_id");
  return envelope.id === wait.id || refused === wait.id ? wait : undefined;
}

/** What cannot be written is given up: a plan ends without its event, a loss is not told of. */
function evolveFailed(state: AttesterState, entry: ObligationFailedEntry): void {
  const ids = "owed" in entry.cause ? [entry.id, entry.cause.owed] : [entry.id];
  for (const id of ids) {
    const wait = state.tenants.get(entry.tenant)?.waits.get(id);
    if (wait === undefined) continue;
    closeWait(state, wait);
    closeTenant(state, wait.tenant);
  }
  const loss = nextLoss(state);
  if (loss === undefined || !ids.includes(truncatedIdOf(loss.assertion))) return;
  endLoss(state, loss.assertion, entry.id, entry.at);
}
