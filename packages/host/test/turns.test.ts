/** Whose turn it is: tenants one after the other, however much one of them asks for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { type TurnBounds, Turns } from "../src/replay/turns.ts";

class Scene {
  readonly turns: Turns;
  /** Under way, in the order in which they began. */
  readonly begun: { name: string; end: () => void }[] = [];
  refused = 0;

  constructor(bounds: Partial<TurnBounds> = {}) {
    this.turns = new Turns({ atOnce: 2, each: 100, all: 100, reserved: 2, ...bounds });
  }

  ask(tenant: string, source: string, count = 1): void {
    for (let asked = 0; asked < count; asked += 1) {
      const work = () =>
        new Promise<void>((resolve) => {
          this.begun.push({ name: `${tenant} ${source}`, end: resolve });
        });
      this.turns.run({ tenant, source }, work).catch((error: unknown) => {
        assert.ok(error instanceof HarmovelaError && error.retry === "now");
        this.refused += 1;
      });
    }
  }

  /** Ends the oldest, one after the other; the names of what began. */
  async drain(): Promise<string[]> {
    const names: string[] = [];
    for (;;) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      const next = this.begun.shift();
      if (next === undefined) return names;
      names.push(next.name);
      next.end();
    }
  }
}

test("who comes last is passed by nobody's tenth question", async () => {
  const scene = new Scene();
  scene.ask("loud", "a", 10);
  scene.ask("loud", "b", 10);
  scene.ask("quiet", "a", 2);
  const names = await scene.drain();
  assert.equal(names.length, 22);
  assert.deepEqual(
    names.flatMap((name, at) => (name === "quiet a" ? [at] : [])),
    [3, 5],
  );
  assert.equal(scene.refused, 0);
});

test("a tenant does not take every place where it may not, and its own go on when one of them ends", async () => {
  const scene = new Scene({ atOnce: 3, atOnceOfTenant: 2 });
  scene.ask("loud", "a", 5);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(scene.begun.length, 2);
  scene.ask("quiet", "a");
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.deepEqual(
    scene.begun.map(({ name }) => name),
    ["loud a", "loud a", "quiet a"],
  );
  assert.equal((await scene.drain()).length, 6);
});

test("where all is asked for that may be, each tenant has a little left, and a bound holds for all of them", async () => {
  const scene = new Scene({ all: 10 });
  scene.ask("loud", "a", 12);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(scene.refused, 2);
  for (let tenant = 0; tenant < 10; tenant += 1) scene.ask(`t${tenant}`, "a", 3);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(scene.refused, 2 + 30 - 10);
  assert.equal((await scene.drain()).length, 20);
  scene.ask("loud", "a", 10);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(scene.refused, 22);
  await scene.drain();
});

test("one asker has its share", async () => {
  const scene = new Scene({ each: 3 });
  scene.ask("acme", "a", 5);
  scene.ask("acme", "b", 3);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(scene.refused, 2);
  assert.equal((await scene.drain()).length, 6);
});
