/** A JSON text as a tree that also holds what no JSON value can: a key twice, a number as it was written. */

export type Node =
  | { kind: "text"; text: string }
  | { kind: "array"; items: Node[] }
  | { kind: "object"; members: [key: string, value: Node][] };

/** The tree of a text; undefined when it is no JSON. Keys keep their quotes and escapes. */
export function readTree(text: string): Node | undefined {
  try {
    return toNode(JSON.parse(text), 0);
  } catch {
    return undefined;
  }
}

/** Deeper than this the text stays as it is. */
const DEPTH_MAX = 80;

function toNode(value: unknown, depth: number): Node {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX)
    return { kind: "text", text: JSON.stringify(value) };
  if (Array.isArray(value))
    return { kind: "array", items: value.map((item) => toNode(item, depth + 1)) };
  const members = Object.entries(value).map(([key, part]): [string, Node] => [
    JSON.stringify(key),
    toNode(part, depth + 1),
  ]);
  return { kind: "object", members };
}

export function writeTree(node: Node): string {
  switch (node.kind) {
    case "text":
      return node.text;
    case "array":
      return `[${node.items.map(writeTree).join(",")}]`;
    case "object":
      return `{${node.members.map(([key, value]) => `${key}:${writeTree(value)}`).join(",")}}`;
  }
}

/** Every place of a tree where another value could stand. */
export function placesIn(root: Node): Place[] {
  const places: Place[] = [];
  const pending: Node[] = [root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    const holder = node;
    if (holder.kind === "array") {
      for (const [index, item] of holder.items.entries()) {
        places.push({ holder, index, node: item });
        pending.push(item);
      }
    } else if (holder.kind === "object") {
      for (const [index, [, value]] of holder.members.entries()) {
        places.push({ holder, index, node: value });
        pending.push(value);
      }
    }
  }
  return places;
}

export interface Place {
  holder: Exclude<Node, { kind: "text" }>;
  index: number;
  node: Node;
}

export function put({ holder, index }: Place, node: Node): void {
  if (holder.kind === "array") holder.items[index] = node;
  else {
    const member = holder.members[index];
    if (member !== undefined) member[1] = node;
  }
}

export function remove({ holder, index }: Place): void {
  if (holder.kind === "array") holder.items.splice(index, 1);
  else holder.members.splice(index, 1);
}
