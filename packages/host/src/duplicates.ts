/** Same id, same content: the recorded outcome (architecture, section 4). */
import { createHash } from "node:crypto";
import { canonicalJson, type Envelope, type LogEntry, sameJson } from "@harmovela/envelope";

/** What identifies the content of an envelope: all of it but when it was sent and the stamps of the log. */
export function unstamped(envelope: Envelope): Envelope {
  const { created_at: _sentAt, delivery: stamped, ...rest } = envelope;
  const { cursor: _cursor, sequence: _sequence, ...delivery } = stamped ?? {};
  return (Object.keys(delivery).length === 0 ? rest : { ...rest, delivery }) as Envelope;
}

/** For entries that do not hold the envelope as it was sent (header `Hv-Digest`). */
export function digestOf(envelope: Partial<Envelope>): string {
  return createHash("sha256")
    .update(canonicalJson(unstamped(envelope as Envelope)))
    .digest("base64url");
}

/** Whether `entry` settled exactly this envelope and not another one under the same id. */
export function isSameContent(envelope: Envelope, entry: LogEntry): boolean {
  if (entry.digest !== undefined) return entry.digest === digestOf(envelope);
  return entry.kind === "event" && sameJson(unstamped(envelope), unstamped(entry.envelope));
}
