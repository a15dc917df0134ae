import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { PacedInput } from "../src/stdio/paced-input.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function arrivals(input: PacedInput): Promise<{ text: string; at: number }[]> {
  const all: { text: string; at: number }[] = [];
  for await (const bytes of input) {
    all.push({ text: Buffer.from(bytes).toString(), at: performance.now() });
  }
  return all;
}

test("pauses of the writer are kept although nobody read at first", async () => {
  const stream = new PassThrough();
  const input = new PacedInput(stream);
  stream.write("a");
  await pause(300);
  stream.write("b");
  await pause(50);
  stream.end();
  const [a, b] = await arrivals(input);
  assert.deepEqual([a?.text, b?.text], ["a", "b"]);
  assert.ok((b?.at ?? 0) - (a?.at ?? 0) >= 290);
});

test("everything comes, in order, also beyond what is read ahead", async () => {
  const stream = new PassThrough();
  const input = new PacedInput(stream);
  const sent = Array.from({ length: 64 }, (_, index) => String(index).padEnd(64 * 1024, "."));
  const reading = arrivals(input);
  for (const text of sent) {
    if (!stream.write(text)) await new Promise((resolve) => stream.once("drain", resolve));
  }
  stream.end();
  assert.equal((await reading).map(({ text }) => text).join(""), sent.join(""));
});

test("a failure of the stream is the reader's", async () => {
  const stream = new PassThrough();
  const input = new PacedInput(stream);
  const reading = arrivals(input);
  stream.destroy(new Error("gone"));
  await assert.rejects(reading, /gone/);
});
