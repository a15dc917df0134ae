import { type Envelope, isInstant, parseInstant } from "@harmovela/envelope";
import type { Frame } from "./frame.ts";
import type { OpenPlan } from "./plan-book.ts";
import { isObject } from "./record.ts";

/** An event at hand, whatever its domain. */
export interface DomainEvent {
  tenant: string;
  frame: Frame;
  envelope: Envelope;
  /** The obligation that it discharges; undefined for what came through the intake. */
  owedBy: string | undefined;
  /** The plan that it ends. */
  final: OpenPlan | undefined;
}

/** A field of the payload, whatever the payload is. */
export function payloadField(envelope: Envelope, name: string): unknown {
  const { payload } = envelope;
  return isObject(payload) && Object.hasOwn(payload, name) ? payload[name] : undefined;
}

/** A text of the payload; an empty one says nothing. */
export function payloadText(envelope: Envelope, name: string): string | undefined {
  const value = payloadField(envelope, name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A time in the payload, ms since the epoch; undefined when it is none. */
export function instantIn(envelope: Envelope, name: string): number | undefined {
  const text = payloadText(envelope, name);
  return isInstant(text) ? parseInstant(text) : undefined;
}
