import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { type TreeNode, treeLines } from "../src/tree-lines.ts";

const node = (id: string, parent?: string): TreeNode => ({
  id,
  parent,
  state: "started",
  who: undefined,
  note: "",
});

/** Without colours, whatever the environment says about them. */
const linesOf = (nodes: readonly TreeNode[]): string[] =>
  treeLines(nodes).map((line) => stripVTControlCharacters(line));

test("children stand below their parent, in order, with branches", () => {
  const nodes = [node("a"), node("b", "a"), node("d", "b"), node("c", "a"), node("e", "elsewhere")];
  assert.deepEqual(linesOf(nodes), [
    "a  started",
    "├─ b  started",
    "│  └─ d  started",
    "└─ c  started",
    "e  started",
  ]);
});

test("a chain as deep as a tree may be needs no stack", () => {
  const nodes = Array.from({ length: 1_001 }, (_, at) =>
    node(String(at), at === 0 ? undefined : String(at - 1)),
  );
  assert.equal(treeLines(nodes).length, 1_001);
});
