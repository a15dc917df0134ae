/** What a simulation does to the memory server and the links to it. */
import type { MemoryServer } from "./memory-server.ts";

/** A message that a stream is about to take. */
export interface Arrival {
  stream: string;
  subject: string;
  /** Whether it belongs to a chain of appends (it names the sequence that it expects to follow). */
  isChained: boolean;
}

/**
 * lost: neither stored nor answered. unanswered: stored, but the answer is lost. late: stored at once,
 * answered after `ms`. refused: not stored, and answered so.
 */
export type ArrivalFault =
  | { kind: "lost" }
  | { kind: "unanswered" }
  | { kind: "late"; ms: number }
  | { kind: "refused"; apiCode: number; description: string };

export class MemoryFaults {
  readonly #server: MemoryServer;
  /** Asked for each message that a stream is about to take; undefined: nothing unusual. */
  onArrival: ((arrival: Arrival) => ArrivalFault | undefined) | undefined;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  /** Cuts a client off. What it had sent is lost, or reaches the server all the same; answers are lost. */
  partition(client: string, inFlight: "lost" | "delivered" = "lost"): void {
    for (const bus of this.#server.clientsNamed(client)) bus.disconnected(inFlight);
  }

  /** Ends a partition: the client reconnects. */
  heal(client: string): void {
    for (const bus of this.#server.clientsNamed(client)) bus.reconnected();
  }

  /** Stalls a client's link without a disconnect: what is sent waits, in both directions. */
  hold(client: string): void {
    for (const bus of this.#server.clientsNamed(client)) bus.link.hold();
  }

  /** Lets everything that waits arrive, in order. */
  release(client: string): void {
    for (const bus of this.#server.clientsNamed(client)) bus.link.release();
  }

  /** The server is killed and back: every client reconnects; what is stored stays. */
  restart(inFlight: "lost" | "delivered" = "lost"): void {
    const clients = this.#server.clients();
    for (const bus of clients) bus.disconnected(inFlight);
    for (const bus of clients) bus.reconnected();
  }

  /** The lease is free although its holder does not know yet. */
  displace(leaseKey: string): void {
    this.#server.leases.drop(leaseKey);
  }

  /** Removes what is below a sequence. */
  trim(stream: string, firstSeq: number): void {
    this.#server.stream(stream)?.trim(firstSeq);
  }

  /** Removes every message whose subject lies in the filter. */
  purge(stream: string, filter: string): void {
    this.#server.stream(stream)?.purge(filter);
  }

  /** Removes the whole stream; a later provision makes another incarnation. */
  deleteStream(stream: string): void {
    this.#server.deleteStream(stream);
  }
}
