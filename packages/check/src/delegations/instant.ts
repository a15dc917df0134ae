import { type Envelope, isInstant, parseInstant } from "@harmovela/envelope";
import { payloadText } from "../tasks/context.ts";

/** A time in the payload, ms since the epoch; undefined when it is none. */
export function instantIn(envelope: Envelope, name: string): number | undefined {
  const text = payloadText(envelope, name);
  return isInstant(text) ? parseInstant(text) : undefined;
}
