/**
 * What of the product was reached: V8 counts how often each block ran. A block that runs for the first time, or
 * a branch that is taken for the first time, makes the inputs that did it worth keeping.
 */
import { type Profiler, Session } from "node:inspector/promises";

const PRODUCT = /\/(?:packages|services)\/[^/]+\/src\//;

export class Coverage {
  readonly #session = new Session();
  readonly #seen = new Set<string>();

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** How many blocks of the product ran for the first time since it was asked last. */
  async news(): Promise<number> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    const before = this.#seen.size;
    for (const script of result) {
      if (PRODUCT.test(script.url)) this.#add(script);
    }
    return this.#seen.size - before;
  }

  /** Blocks of the product that ran so far. */
  get size(): number {
    return this.#seen.size;
  }

  #add({ scriptId, functions }: Profiler.ScriptCoverage): void {
    for (const { ranges } of functions) {
      for (const { startOffset, endOffset, count } of ranges) {
        if (count > 0) this.#seen.add(`${scriptId}:${startOffset}:${endOffset}`);
      }
    }
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }
}
