/**
 * Heartbeats on the live subject (architecture, section 3; spec 5.1): unjudged and not stored, a sign of
 * life for the leader's memory and nothing else.
 */

import type { Bus } from "@harmovela/bus";
import { type CoreMessage, decodeToken, type Subscription } from "@harmovela/bus";
import { checkEnvelope, parseJson, sessionIdOf } from "@harmovela/envelope";

const SUBJECT = "hv.*.live.*.session.heartbeat";

/** Calls `hear` for each heartbeat that names a session; the sender is who the subject says. */
export function listenForHeartbeats(
  bus: Bus,
  hear: (tenant: string, source: string, sessionId: string) => void,
): Subscription {
  return bus.subscribe(SUBJECT, ({ subject, data }: CoreMessage) => {
    const [, tenantToken = "", , sourceToken = ""] = subject.split(".");
    const tenant = decodeToken(tenantToken);
    const source = decodeToken(sourceToken);
    const json = parseJson(data);
    const envelope = json.ok ? checkEnvelope(json.value) : json;
    const id = envelope.ok ? sessionIdOf(envelope.value) : undefined;
    if (tenant !== undefined && source !== undefined && id !== undefined) hear(tenant, source, id);
  });
}
