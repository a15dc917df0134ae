/**
 * Whether the connection is up, and who wants to know when that changes.
 *
 * C1 What the client is given to send while it is down it drops at its next attempt to connect, and the
 *    server that was asked before the loss may be gone: nobody waits for an answer to either.
 */
import { HarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";

/** `isFinal`: the connection was closed and does not come back. */
export type ConnectionChange = "connected" | "disconnected" | "closed";

export class ConnectionState {
  readonly #disconnected = new Set<() => void>();
  readonly #reconnected = new Set<() => void>();
  /** Questions that wait for the connection. */
  readonly #waiting = new Set<(error?: HarmovelaError) => void>();
  readonly #onChange: ((change: ConnectionChange) => void) | undefined;
  #isConnected = true;
  #isClosed = false;

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

  /**
   * Asks once the connection is up, which may take `timeoutMs`, and fails when it is lost before there
   * is an answer (C1): `connection_error`.
   */
  async ask<T>(timeoutMs: number, question: () => Promise<T>): Promise<T> {
    if (!this.#isConnected && !this.#isClosed) await this.#connected(timeoutMs);
    return await new Promise<T>((resolve, reject) => {
      const cancel = this.onceDisconnected(() => {
        // The client itself refuses what was asked on a connection that is closed.
        if (!this.#isClosed) reject(connectionLost());
      });
      question().then(resolve, reject).finally(cancel);
    });
  }

  #connected(timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: HarmovelaError): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        if (error) reject(error);
        else resolve();
      };
      const timer = setTimeout(() => end(connectionLost()), timeoutMs);
      this.#waiting.add(end);
    });
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
    if (change === "closed") {
      this.#isClosed = true;
      for (const end of [...this.#waiting]) end(connectionClosed());
    }
    if (wasConnected) {
      const waiting = [...this.#disconnected];
      this.#disconnected.clear();
      for (const fn of waiting) callOut(fn);
    }
    if (wasConnected || change === "closed") this.#tell(change);
  }

  #up(): void {
    this.#isConnected = true;
    for (const end of [...this.#waiting]) end();
    for (const fn of [...this.#reconnected]) callOut(fn);
    this.#tell("connected");
  }

  #tell(change: ConnectionChange): void {
    callOut(() => this.#onChange?.(change));
  }
}

function connectionLost(): HarmovelaError {
  return new HarmovelaError("connection_error", "there is no connection");
}

function connectionClosed(): HarmovelaError {
  return new HarmovelaError("closed", "the connection is closed");
}
