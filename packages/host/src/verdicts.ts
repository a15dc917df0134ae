/** Verdicts leave when what they speak of is stored, and only to an inbox of the sender. */
import { type Bus, HEADER, isUnderInbox, type StoredMessage } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import type { Counters } from "./counters.ts";
import type { Releases } from "./releases.ts";

/** W3C trace context, version-independent form; anything else is not carried on. */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;

/** The sender's `traceparent`, "" when there is none that may be copied into other messages. */
export function traceparentOf(message: StoredMessage): string {
  const text = message.header(HEADER.traceparent);
  return TRACEPARENT.test(text) ? text : "";
}

export interface VerdictSender {
  answerer: Bus;
  releases: Releases;
  counters: Counters;
  replyPrefix(tenant: string, source: string): string;
}

/**
 * Sends the verdict on an intake message when everything up to `seq` is stored. A reply subject
 * outside the sender's inbox is dropped and counted (architecture, section 3).
 */
export function sendVerdict(
  sender: VerdictSender,
  message: StoredMessage,
  about: { tenant: string; source: string },
  seq: number,
  verdict: () => Envelope,
): void {
  const reply = message.header(HEADER.replyTo);
  if (reply === "") return;
  if (!isUnderInbox(reply, sender.replyPrefix(about.tenant, about.source))) {
    sender.counters.add("replies_dropped");
    return;
  }
  const traceparent = traceparentOf(message);
  sender.releases.add(seq, () => {
    sender.counters.add("verdicts");
    sender.answerer.publish(
      reply,
      traceparent === "" ? {} : { [HEADER.traceparent]: traceparent },
      Buffer.from(JSON.stringify(verdict())),
    );
  });
}
