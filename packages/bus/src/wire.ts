/** What the parts that both adapters share need of a connection. */
import type { Clock } from "./clock.ts";
import type { CoreMessage, Subscription } from "./port.ts";

export interface Wire {
  readonly clock: Clock;
  /** A fresh reply subject under the connection's own prefix; its last token is unique. */
  newInbox(): string;
  /** `lines` as `headerLines` makes them. */
  publish(subject: string, lines: string, data: Uint8Array, reply: string): void;
  /** `onLost`: the server forbids it; nothing more arrives. */
  subscribe(
    subject: string,
    onMessage: (message: CoreMessage) => void,
    onLost: () => void,
  ): Subscription;
  /** Calls once at the next loss of the connection; the result cancels it. */
  onceDisconnected(fn: () => void): () => void;
}
