/** What an `interruption.saved` says of its checkpoint (spec 5.7). */
import { type Envelope, type EventEntry, type Instant, parseInstant } from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import { LOCATION_LENGTH_MAX } from "../settings.ts";
import type { Checkpoint } from "../state.ts";
import { textIn, valueIn } from "./payload.ts";

const DIGEST = /^sha-256:[0-9a-f]{64}$/;
/** What this deployment stores itself; a name follows. Any other location is somebody else's and never opened. */
const OWN_STORE = "hv-checkpoint:";

/** What of it may never change under its id. */
export function contentOf(envelope: Envelope): Pick<Checkpoint, "bytes" | "location" | "digest"> {
  const bytes = valueIn(envelope, "bytes_saved");
  return {
    bytes: typeof bytes === "number" ? bytes : undefined,
    location: textIn(envelope, "location"),
    digest: textIn(envelope, "digest"),
  };
}

/** The checkpoint that an entry registers. */
export function checkpointOf(
  { envelope, seq, at }: EventEntry,
  interruption: string,
): Checkpoint | undefined {
  const { checkpoint_id: id, source: owner } = envelope;
  if (id === undefined) return undefined;
  return { id, at: savedAt(envelope, at), ...contentOf(envelope), owner, interruption, seq };
}

function savedAt({ checkpoint_at: stated }: Envelope, at: Instant): Instant {
  return stated === undefined ? at : parseInstant(stated);
}

/** Places and digests of a form that nobody could use. */
export function formRefusal(envelope: Envelope): ErrorPayload | undefined {
  const { location, digest } = contentOf(envelope);
  if (digest !== undefined && !DIGEST.test(digest)) {
    const details = { path: "payload.digest" };
    const message = "payload.digest must be sha-256: and 64 hexadecimal digits";
    return reject("invalid_envelope", message, details);
  }
  const isNameless = location === OWN_STORE;
  if (location === undefined || (location.length <= LOCATION_LENGTH_MAX && !isNameless)) return;
  const details = { path: "payload.location" };
  const message = isNameless
    ? `${OWN_STORE} must be followed by a name`
    : `payload.location has at most ${LOCATION_LENGTH_MAX} characters`;
  return reject("invalid_envelope", message, details);
}
