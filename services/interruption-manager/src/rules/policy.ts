/** What a request for an interruption asks for (spec 5.7). */
import type { Envelope, Instant } from "@harmovela/envelope";
import { LAST_INSTANT, type ManagerSettings } from "../settings.ts";
import { type Interruption, isStopped, type Policy } from "../state.ts";
import { millisecondsIn, payloadObject } from "./payload.ts";

const STRENGTH: Readonly<Record<Policy, number>> = {
  drain_then_stop: 0,
  save_and_stop: 1,
  force_stop: 2,
};

export function policyOf({ interruption_policy: policy = "save_and_stop" }: Envelope): Policy {
  return policy;
}

/** Whether a request takes the place of the one that is open: it is stronger, and nothing has stopped yet. */
export function mayReplace(policy: Policy, open: Interruption): boolean {
  return !isStopped(open) && STRENGTH[policy] > STRENGTH[open.policy];
}

/** The grace of a request, from its receipt on; none under a forced stop. */
export function graceMsOf(envelope: Envelope, settings: ManagerSettings): number | undefined {
  const policy = policyOf(envelope);
  if (policy === "force_stop") return undefined;
  const grace = millisecondsIn(envelope, "grace_period_ms");
  if (typeof grace === "number") return grace;
  return policy === "drain_then_stop" ? settings.drainGraceMs : settings.saveGraceMs;
}

export function dueAfter(at: Instant, ms: number): Instant {
  return Math.min(at + ms, LAST_INSTANT);
}

/** The request with what it leaves out, so that nobody needs to know the defaults. */
export function completed(envelope: Envelope, settings: ManagerSettings): Envelope {
  const policy = policyOf(envelope);
  const graceMs = graceMsOf(envelope, settings);
  const hasGrace = graceMs === undefined || millisecondsIn(envelope, "grace_period_ms") === graceMs;
  if (envelope.interruption_policy !== undefined && hasGrace) return envelope;
  const payload = payloadObject(envelope) ?? {};
  return {
    ...envelope,
    interruption_policy: policy,
    payload: graceMs === undefined ? payload : { ...payload, grace_period_ms: graceMs },
  };
}

/** Whether the subtree is meant too. */
export function isForTree(envelope: Envelope): boolean {
  return payloadObject(envelope)?.scope === "tree";
}
