/** An honest agent, its neighbour in another tenant, and one that attacks, on a server with accounts. */
import assert from "node:assert/strict";
import type { Answer } from "../chaos/sender.ts";
import { assertOnlyGrown, Stage } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

export const HONEST = "agent:honest";
export const MALLORY = "agent:mallory";
export const WORKER = "agent:worker";
export const DEADLINE_MS = 30_000;

/** What one agent says in `honest`. */
const HONEST_ENVELOPES = 4;

export class Scene implements AsyncDisposable {
  readonly stage: Stage;
  readonly mallory: PlainAgent;
  readonly honest: PlainAgent;
  /** Of the name of the honest one, in another tenant. */
  readonly neighbour: PlainAgent;
  #tasks = 0;

  private constructor(
    stage: Stage,
    [mallory, honest, neighbour]: [PlainAgent, PlainAgent, PlainAgent],
  ) {
    this.stage = stage;
    this.mallory = mallory;
    this.honest = honest;
    this.neighbour = neighbour;
  }

  static async open(): Promise<Scene> {
    const stage = await Stage.open([
      ["acme", HONEST],
      ["acme", MALLORY],
      ["acme", WORKER],
      ["beta", HONEST],
    ]);
    const scene = new Scene(stage, [
      await stage.agent("acme", MALLORY),
      await stage.agent("acme", HONEST),
      await stage.agent("beta", HONEST),
    ]);
    await scene.honest.honest("task_before");
    await scene.neighbour.honest("task_before");
    return scene;
  }

  /**
   * The attack; then the attacker works honestly, and nothing else has happened. `stored`: how many
   * messages of the attack the intakes take, to be refused by a service.
   */
  async attacked(attack: (task: string) => Promise<void>, { stored = 0 } = {}): Promise<void> {
    this.#tasks += 1;
    const task = `task_after_${this.#tasks}`;
    const earlier = await this.stage.picture();
    await attack(`${task}_too`);
    await this.mallory.nats.flush();
    await this.mallory.honest(task);
    const later = await this.stage.picture();
    assertOnlyGrown(earlier, later, isExplained(task));
    assert.equal(later.asked - earlier.asked, stored + HONEST_ENVELOPES);
    for (const { host } of this.stage.services) {
      assert.equal(host.status().role, "leader");
      assert.deepEqual(host.status().alarms, []);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stage[Symbol.asyncDispose]();
  }
}

/** Entries of the attacker's own work and refusals of it, and what a service notes about itself. */
function isExplained(task: string): (entry: string) => boolean {
  return (entry) => {
    const [, subject = ""] = entry.split(" ");
    if (/^hv\.-\.ctl\.[a-z]+\.(?:position|refused)$/.test(subject)) {
      return !entry.includes('{"stream":');
    }
    const own = new RegExp(`^hv\\.acme\\.log\\.tasks\\.${MALLORY}\\.-\\.task\\.`);
    if (own.test(subject) && entry.includes(`"task_id":"${task}`)) return true;
    return /^hv\.acme\.log\.\w+\.service:[\w-]+\.agent:(?:mallory|honest)\.[\w.]*rejected$/.test(
      subject,
    );
  };
}

export async function refused(code: string, said: Promise<Answer>): Promise<void> {
  const { type, payload } = await said;
  assert.match(type, /rejected$/);
  assert.equal(payload.error?.code, code, JSON.stringify(payload));
}

/** Its cursor. */
export async function accepted(said: Promise<Answer>): Promise<string> {
  const { type, payload } = await said;
  assert.equal(type, "event.acknowledged", JSON.stringify(payload));
  return payload.cursor ?? "";
}
