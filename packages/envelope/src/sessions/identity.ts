import type { Envelope } from "../envelope.ts";
import { isRecord } from "../field.ts";

/** Which session an envelope belongs to: the envelope says it, or the payload of `session.*` does. */
export function sessionIdOf(envelope: Envelope): string | undefined {
  return envelope.session_id ?? namedInPayload(envelope);
}

/** `session.*` repeats the id in its payload; two different ids name no session. */
export function namesTwoSessions(envelope: Envelope): boolean {
  const inPayload = namedInPayload(envelope);
  return (
    inPayload !== undefined &&
    envelope.session_id !== undefined &&
    envelope.session_id !== inPayload
  );
}

function namedInPayload({ type, payload }: Envelope): string | undefined {
  if (!type.startsWith("session.") || !isRecord(payload)) return undefined;
  if (!Object.hasOwn(payload, "session_id")) return undefined;
  const { session_id: id } = payload;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** A harness repeats what the runtime itself said; such an echo is logged and changes nothing. */
export function isHarness(source: string): boolean {
  return source.startsWith("harness:");
}

/** What the services of the bus say. */
export function isService(source: string): boolean {
  return source.startsWith("service:");
}
