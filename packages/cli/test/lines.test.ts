import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type InputLine, readLines } from "../src/stdio/lines.ts";

async function linesOf(chunks: Iterable<Uint8Array>, lengthMax = 1000): Promise<InputLine[]> {
  async function* feed(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  const lines: InputLine[] = [];
  for await (const line of readLines(feed(), lengthMax)) lines.push(line);
  return lines;
}

const textOf = ({ bytes }: InputLine): string | undefined => bytes && Buffer.from(bytes).toString();

test("LF and CRLF end a line, blank lines are passed over, the last needs no end", async () => {
  const lines = await linesOf([Buffer.from("a\r\n\n  \t\r\nb\n\nc")]);
  assert.deepEqual(lines.map(textOf), ["a", "b", "c"]);
  assert.deepEqual(
    lines.map((line) => line.number),
    [1, 4, 6],
  );
});

test("a line over the bound is not kept, and the next one is read", async () => {
  const lines = await linesOf([Buffer.from("x".repeat(40)), Buffer.from("y\nshort\n")], 20);
  assert.deepEqual(lines.map(textOf), [undefined, "short"]);
  assert.equal(lines[0]?.length, 41);
});

test("where the chunks end makes no difference", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("a", "bc", "é", "\n", "\r\n", " ", "long text"), { maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 60 }),
      async (parts, sizes) => {
        const whole = Buffer.from(parts.join(""));
        const chunks: Uint8Array[] = [];
        let from = 0;
        for (const size of [...sizes, whole.length]) {
          chunks.push(whole.subarray(from, from + size));
          from += size;
        }
        assert.deepEqual((await linesOf(chunks)).map(textOf), (await linesOf([whole])).map(textOf));
      },
    ),
  );
});
