/** What was sent to the intake, and what must become of it when the server stores it. */
import type { SimRandom } from "@harmovela/testkit";
import { blockOf, ELSEWHERE, type Trick } from "./headers.ts";
import type { RawMessage } from "./raw-client.ts";

export const VERDICTS = "_INBOX.p6.v";

export interface Sent {
  subject: string;
  /** Whether the subject names somebody who can be answered. */
  isNaming: boolean;
  reply: "ours" | "elsewhere" | "none";
}

/** Numbers every message, in a header that comes back with it. */
export class Ledger {
  readonly sent: Sent[] = [];

  /** A message whose verdict is asked for at an inbox of ours. */
  asked(subject: string, isNaming: boolean, body: Uint8Array, trick: Trick = PLAIN): RawMessage {
    const number = this.sent.push({ subject, isNaming, reply: "ours" }) - 1;
    return { subject, head: blockOf(number, `${VERDICTS}.${number}`, trick), body };
  }

  /** One whose verdict is to go where it must not. */
  misled(subject: string, body: Uint8Array, reply: string): RawMessage {
    const number = this.sent.push({ subject, isNaming: true, reply: "elsewhere" }) - 1;
    return { subject, head: blockOf(number, reply, PLAIN), body };
  }

  /** One that wants no verdict. */
  unasked(subject: string, isNaming: boolean, body: Uint8Array, trick: Trick): RawMessage {
    const number = this.sent.push({ subject, isNaming, reply: "none" }) - 1;
    return { subject, head: blockOf(number, undefined, trick), body };
  }

  /** Any of the three. */
  any(subject: string, body: Uint8Array, trick: Trick, random: SimRandom): RawMessage {
    if (random.chance(0.7)) return this.asked(subject, true, body, trick);
    if (random.chance(0.5) || !isAnswered(subject)) return this.unasked(subject, true, body, trick);
    return this.misled(subject, body, random.pick(ELSEWHERE) ?? "x");
  }
}

const PLAIN: Trick = { status: "", lines: "" };

/** Families that get no acknowledgement (spec 9.2); what is refused is answered in any family. */
export function isAnswered(subject: string): boolean {
  return !/\.(?:event\.[^.]+|session\.heartbeat)$/.test(subject);
}
