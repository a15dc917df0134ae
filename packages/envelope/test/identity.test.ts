import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  deriveId,
  hasLoneSurrogate,
  isDerivedId,
  isId,
  isUri,
  newEventId,
  newId,
} from "../src/index.ts";

test("a derived id is a function of its four inputs", () => {
  const id = deriveId("acme", "in:17", "task_1", 1_796_000_000_000);
  assert.equal(id, deriveId("acme", "in:17", "task_1", 1_796_000_000_000));
  const others = [
    deriveId("acme2", "in:17", "task_1", 1_796_000_000_000),
    deriveId("acme", "in:18", "task_1", 1_796_000_000_000),
    deriveId("acme", "in:17", "task_2", 1_796_000_000_000),
    deriveId("acme", "in:17", "task_1", 1_796_000_000_001),
  ];
  assert.equal(new Set([id, ...others]).size, 5);
});

test("a derived id stays what it is, for it stands in logs", () => {
  assert.equal(
    deriveId("acme", "in:17", "task_1", 1_796_000_000_000),
    "hv_01M8MZ2A00BE0XG92MSNJFH6QW",
  );
});

test("inputs do not run together", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
      if (b !== "") assert.notEqual(deriveId(a + b, c, "0", 0), deriveId(a, b + c, "0", 0));
      assert.notEqual(deriveId(a, `${b}1`, "", 0), deriveId(a, b, "1", 0));
    }),
  );
});

test("derived ids have a form of their own and sort by time", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(), fc.nat({ max: 2 ** 31 - 2 }), (tenant, index, at) => {
      const id = deriveId(tenant, "c", index, at);
      assert.ok(isDerivedId(id));
      assert.ok(isId(id));
      assert.ok(id < deriveId(tenant, "c", index, at + 1));
    }),
  );
  for (const id of [
    "",
    "hv_",
    "evt_01J9ZK3V7W8X9Y0ABCDEFGHJKM",
    "hv_01J9ZK3V7W8X9Y0ABCDEFGHJK",
    "hv_01j9zk3v7w8x9y0abcdefghjkm",
    "hv_01J9ZK3V7W8X9Y0ABCDEFGHJKU",
    "hv_01J9ZK3V7W8X9Y0ABCDEFGHJKM\n",
  ])
    assert.equal(isDerivedId(id), false, id);
});

test("instants that a ULID cannot hold do not break the form", () => {
  for (const at of [-5, 2 ** 60, 0.5]) assert.ok(isDerivedId(deriveId("t", "c", 0, at)));
});

test("fresh ids are all different and never of the derived form", () => {
  const ids = Array.from({ length: 1000 }, () => newEventId());
  assert.equal(new Set(ids).size, 1000);
  for (const id of ids) {
    assert.match(id, /^evt_[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.equal(isDerivedId(id), false);
  }
  assert.match(newId("task"), /^task_[0-9A-Z]{26}$/);
});

test("N7 ids are compared byte for byte and nothing is normalised", () => {
  for (const id of [
    "\u00e9",
    "e\u0301",
    "w\u043erker",
    "a\u200db",
    "a\u200fb",
    "😀".repeat(32),
    "a b",
    "a..b",
  ])
    assert.ok(isId(id), id);
  for (const id of [
    "",
    "\u0000",
    "a\r\nPUB x 0",
    "\u009f",
    "\u007f",
    "\udc00",
    "😀".repeat(33),
    "x".repeat(1000),
    5,
    null,
  ])
    assert.equal(isId(id), false);
});

test("a lone surrogate is found wherever it stands", () => {
  for (const text of ["\ud800", "a\udc00", "\udc00\ud800", "😀\ud83d"])
    assert.ok(hasLoneSurrogate(text));
  for (const text of ["", "😀", "a\ufffd"]) assert.equal(hasLoneSurrogate(text), false);
});

test("URIs have a scheme and legal characters", () => {
  for (const good of [
    "https://a.example:8080/b/c?d=e#f",
    "urn:isbn:1",
    "context:file_tree",
    "http://u:p@[::1]:80/",
    "file:///etc/x",
    "a+b.c-d:e",
    "http://a/%20",
    "https://xn--bcher-kva.example/",
  ])
    assert.ok(isUri(good), good);
  for (const bad of [
    "",
    "a",
    "/a",
    "//a/b",
    "1a:b",
    ":b",
    "a:",
    "http://a b",
    "http://a/\u00e9",
    "http://a/%zz",
    "http://[1:2:3]/",
    "http://a:x/",
    "a:b c",
    "http://a/<b>",
    `a:${"b".repeat(2048)}`,
    null,
    5,
  ])
    assert.equal(isUri(bad), false, String(bad));
});
