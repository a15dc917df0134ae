import assert from "node:assert/strict";
import { test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { FakeClock, pass } from "@harmovela/testkit";
import { type LeaseEntry, LeaseKeeper, type LeaseStore } from "../src/lease-keeper.ts";

const TTL_MS = 1_000;

/** A server whose clock was set back by hours: no entry grows old any more. */
class StoppedClockStore implements LeaseStore {
  #entry: LeaseEntry | undefined;

  async put(_key: string, value: string, revision: number): Promise<number> {
    const is = this.#entry?.revision ?? 0;
    if (is !== revision) throw new HarmovelaError("append_conflict", "not as expected");
    this.#entry = { revision: is + 1, value };
    return is + 1;
  }

  async giveUp(): Promise<void> {
    throw new Error("nobody gives it up here");
  }

  async last(): Promise<LeaseEntry | undefined> {
    return this.#entry;
  }
}

test("H9: a lease does not outlive its holder when the server's clock was set back, nor is it taken from one who renews", async () => {
  const clock = new FakeClock();
  const store = new StoppedClockStore();
  const told: string[] = [];
  const open = (name: string, process = clock.openProcess()): LeaseKeeper =>
    new LeaseKeeper(
      { clock: process, id: name, jitter: () => 0.5, openStore: async () => store },
      {
        key: "tasks",
        holder: name,
        ttlMs: TTL_MS,
        onAcquired: () => told.push(`${name} has it`),
        onLost: () => told.push(`${name} lost it`),
      },
    );
  const dying = clock.openProcess();
  open("a", dying);
  await pass(clock, 100);
  const b = open("b");
  await pass(clock, 20 * TTL_MS);
  assert.deepEqual(told, ["a has it"], "renewed, it is nobody else's");
  dying.kill();
  await pass(clock, 1.5 * TTL_MS);
  assert.deepEqual(told, ["a has it"], "not before twice its time");
  await pass(clock, 1.5 * TTL_MS);
  assert.deepEqual(told, ["a has it", "b has it"]);
  assert.equal(b.isHeld, true);
});
