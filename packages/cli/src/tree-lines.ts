/** A tree of tasks as lines. */
import pc from "picocolors";
import { cut, plainName, plainText } from "./terminal.ts";

export interface TreeNode {
  id: string;
  parent: string | undefined;
  state: string;
  /** Its owner, or whom it is for. */
  who: string | undefined;
  note: string;
}

const NOTE_LENGTH_MAX = 80;

const COLORS: Readonly<Record<string, (text: string) => string>> = {
  completed: pc.green,
  failed: pc.red,
  timed_out: pc.red,
  cancelled: pc.yellow,
};

/** One line for each node, indented below its parent; parents come before their children. */
export function treeLines(nodes: readonly TreeNode[]): string[] {
  const children = new Map<string | undefined, TreeNode[]>();
  const known = new Set(nodes.map((node) => node.id));
  for (const node of nodes) {
    const parent = node.parent !== undefined && known.has(node.parent) ? node.parent : undefined;
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const lines: string[] = [];
  const open = (children.get(undefined) ?? [])
    .map((node) => ({ node, lead: "", tail: "" }))
    .reverse();
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { node, lead, tail } = at;
    lines.push(`${pc.dim(lead)}${nodeLine(node)}`);
    const below = children.get(node.id) ?? [];
    for (const [index, child] of [...below.entries()].reverse()) {
      const isLast = index === below.length - 1;
      open.push({
        node: child,
        lead: `${tail}${isLast ? "└─ " : "├─ "}`,
        tail: `${tail}${isLast ? "   " : "│  "}`,
      });
    }
  }
  return lines;
}

function nodeLine({ id, state, who, note }: TreeNode): string {
  const color = COLORS[state] ?? pc.cyan;
  const parts = [pc.bold(plainName(id)), color(plainName(state))];
  if (who !== undefined) parts.push(plainName(who));
  if (note !== "") parts.push(pc.dim(cut(plainText(note), NOTE_LENGTH_MAX)));
  return parts.join("  ");
}
