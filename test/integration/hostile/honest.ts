/** An agent that works on, whatever the others do. */
import assert from "node:assert/strict";
import { type Agent, connect } from "@harmovela/client";

/** On a quiet machine a verdict takes a few milliseconds. */
const VERDICT_MS_MAX = 30_000;

export class HonestAgent implements AsyncDisposable {
  readonly #agent: Agent;
  readonly #work: Promise<void>;
  #isOver = false;
  tasks = 0;
  slowestMs = 0;

  private constructor(agent: Agent) {
    this.#agent = agent;
    this.#work = this.#run();
    this.#work.catch(() => {
      // `stop` throws it.
    });
  }

  static async start(url: string): Promise<HonestAgent> {
    return new HonestAgent(
      await connect({ servers: url, agent: "agent:honest", tenant: "honest" }),
    );
  }

  /** Throws what went wrong. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const parent = await this.#timed(this.#agent.submit({ description: "honest work" }));
      await this.#timed(parent.start());
      const child = await this.#timed(parent.child({ description: "a part of it" }));
      await this.#timed(child.start());
      if (this.tasks % 8 === 0) {
        await this.#timed(parent.cancel({ now: true }));
        await this.#timed(child.settled());
        await this.#timed(parent.settled());
      } else {
        await this.#timed(child.complete());
        await this.#timed(parent.complete());
      }
      this.tasks += 2;
    }
  }

  async #timed<T>(work: Promise<T>): Promise<T> {
    const since = performance.now();
    const result = await work;
    const took = performance.now() - since;
    this.slowestMs = Math.max(this.slowestMs, took);
    assert.ok(took < VERDICT_MS_MAX, `a verdict took ${took} ms`);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#agent.close();
  }
}
