import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { eventLine } from "../src/event-line.ts";
import { cut, plainJson, plainName, plainText } from "../src/terminal.ts";

test("N7 names that look alike are shown apart", () => {
  assert.equal(plainName("agent:worker"), "agent:worker");
  assert.equal(plainName("agent:w\u043erker"), "agent:w\\u{43e}rker");
  assert.equal(plainName("caf\u00e9"), "caf\\u{e9}");
  assert.equal(plainName("cafe\u0301"), "cafe\\u{301}");
  assert.equal(plainName("a\u200db"), "a\\u{200d}b");
});

test("free text keeps its letters and loses what moves the cursor or cannot be seen", () => {
  assert.equal(plainText("Grüße, мир"), "Grüße, мир");
  assert.equal(plainText("\u001b[31mred\u0007\r\n"), "\\u{1b}[31mred\\u{7}\\u{d}\\u{a}");
  assert.equal(plainText("\u202eevil\u2066\ufeff"), "\\u{202e}evil\\u{2066}\\u{feff}");
  assert.equal(plainText("tag\u{e0041} \ud800"), "tag\\u{e0041} \\u{d800}");
});

test("printed JSON has the same value and nothing unsafe", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const printed = plainJson(JSON.stringify({ text }));
      assert.equal(printed, plainText(printed));
      assert.deepEqual(JSON.parse(printed), { text });
    }),
  );
});

test("an event line holds nothing unsafe, whatever the agent wrote", () => {
  const evil = "\u001b]0;owned\u0007\u202e\n";
  const line = eventLine(
    {
      spec_version: "0.2",
      id: evil,
      type: "task.submitted",
      source: evil,
      target: evil,
      task_id: evil,
      created_at: evil.repeat(9),
      payload: { description: evil, error: { code: evil, message: evil } },
    },
    evil,
  );
  // Colours are ours.
  const text = stripVTControlCharacters(line);
  assert.equal(text, plainText(text));
  assert.equal(text.match(/owned/g)?.length, 7);
});

test("a cut text is no longer than asked for", () => {
  assert.equal(cut("abcdef", 4), "abc…");
  assert.equal(cut("abcd", 4), "abcd");
});
