/** Who is told of a fault and has one himself. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { tell } from "../src/tell.ts";

async function warningOf(listener: () => unknown): Promise<string> {
  const warned = once(process, "warning", { signal: AbortSignal.timeout(30_000) });
  tell(listener, "told");
  const [warning] = (await warned) as [Error & { code?: string }];
  assert.equal(warning.code, "HARMOVELA_LISTENER");
  return warning.message;
}

test("what a listener throws or rejects with is a warning, and the caller goes on", async () => {
  const thrown = await warningOf(() => {
    throw new Error("thrown");
  });
  assert.match(thrown, /thrown/);
  assert.match(await warningOf(() => Promise.reject(new Error("rejected"))), /rejected/);
  assert.match(
    await warningOf(() => {
      throw null;
    }),
    /null/,
  );
});

test("a listener gets what there is to tell, and nobody need listen", () => {
  const told: string[] = [];
  tell((what: string) => told.push(what), "one");
  tell(undefined, "two");
  assert.deepEqual(told, ["one"]);
});
