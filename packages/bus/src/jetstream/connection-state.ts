/** Whether the connection is up, and who wants to know when that changes. */
import type { NatsConnection } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";

/** `isFinal`: the connection was closed and does not come back. */
export type ConnectionChange = "connected" | "disconnected" | "closed";

export class ConnectionState {
  readonly #disconnected = new Set<() => void>();
  readonly #reconnected = new Set<() => void>();
  readonly #onChange: ((change: ConnectionChange) => void) | undefined;
  #isConnected = true;

  constructor(nats: NatsConnection, onChange: ((change: ConnectionChange) => void) | undefined) {
    this.#onChange = onChange;
    this.#watch(nats).catch((error: unknown) => {
      // The client's status iterator has no error of its own; if it throws, that is a bug to be seen.
      queueMicrotask(() => {
        throw error;
      });
    });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  onceDisconnected(fn: () => void): () => void {
    this.#disconnected.add(fn);
    return () => this.#disconnected.delete(fn);
  }

  onReconnected(fn: () => void): () => void {
    this.#reconnected.add(fn);
    return () => this.#reconnected.delete(fn);
  }

  async #watch(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === "disconnect") this.#down("disconnected");
      else if (status.type === "reconnect") this.#up();
      else if (status.type === "close") this.#down("closed");
    }
  }

  #down(change: "disconnected" | "closed"): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    if (wasConnected) {
      const waiting = [...this.#disconnected];
      this.#disconnected.clear();
      for (const fn of waiting) callOut(fn);
    }
    if (wasConnected || change === "closed") this.#tell(change);
  }

  #up(): void {
    this.#isConnected = true;
    for (const fn of [...this.#reconnected]) callOut(fn);
    this.#tell("connected");
  }

  #tell(change: ConnectionChange): void {
    callOut(() => this.#onChange?.(change));
  }
}
