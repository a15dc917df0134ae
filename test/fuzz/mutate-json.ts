/** Changes of JSON texts that keep them JSON, or nearly. */
import type { SimRandom } from "@harmovela/testkit";
import { type Node, placesIn, put, readTree, remove, writeTree } from "./json-tree.ts";

const LONG = [64, 128, 129, 1_024, 8_193, 70_000];

/** Values that break something somewhere, as they stand in a text. */
const TEXTS: readonly string[] = [
  ...["null", "true", "false", "0", "-0", "-1", "1", "0.5", "1e3", "1E400", "-1e400", "1e-400"],
  ...[
    "9007199254740991",
    "9007199254740992",
    "-9007199254740993",
    "1e21",
    "1.7976931348623157e308",
  ],
  ...["2147483647", "2147483648", "4294967296", "253402300799999", "253402300800000", "5e-324"],
  ...['""', '" "', '"x"', '"-"', '"."', '"*"', '">"', '"a.b"', '"5000"', '"a\\u0000b"', '"\\t"'],
  ...['"\\ud800"', '"\\udc00"', '"\\ud83d\\ude00"', '"é"', '"e\\u0301"', '"\\u200d"', '"\\u0085"'],
  ...[
    '"__proto__"',
    '"constructor"',
    '"toString"',
    '"hasOwnProperty"',
    '"hv_00000000000000000000000000"',
  ],
  ...['"2026-02-30T00:00:00Z"', '"2026-06-30T23:59:60Z"', '"2026-11-30T10:00:00+24:00"', '"soon"'],
  ...['"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59.999Z"', '"2026-11-30T10:00:05Z"'],
  ...['"2026-11-30T10:00:00.0000000000000000000000000000000000000001Z"', '"0000-01-01T00:00:00Z"'],
  ...['"P1W"', '"PT0S"', '"P"', '"-P1D"', '"P999999999D"', '"PT1H30M"', '"P1000Y"', '"PT0.001S"'],
  ...['"https://a.example/b"', '"a:"', '"//x"', '"http://a/%zz"', '"memory:f"', '"state"'],
  ...['"service:delegation-coordinator"', '"harness:x"', '"agent:a"', '"agent:b"', '"t0"', '"t1"'],
  ...["[]", "{}", "[null]", "[[]]", '[""]', '{"a":1}', '{"__proto__":{"a":1}}', '{"":""}'],
  ...[
    '{"code":"c","message":"m"}',
    '[{"source":"agent:a","id":"e1"}]',
    '["harmovela.security.v1"]',
  ],
];

const KEYS: readonly string[] = [
  ...[
    '"__proto__"',
    '"constructor"',
    '"toString"',
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"id"',
    '"type"',
  ],
  ...[
    '"delivery"',
    '"cursor"',
    '"tenant_id"',
    '"payload"',
    '"error"',
    '"source"',
    '"x"',
    '"\\u0069d"',
  ],
];

/** A copy with one change; what is no JSON is left as it is. */
export function mutateJson(text: string, other: string, random: SimRandom): string {
  const root = readTree(text);
  if (root === undefined) return text;
  const places = placesIn(root);
  const place = random.pick(places);
  if (place === undefined) return troubleOf(random);
  const { holder, index, node } = place;
  switch (random.whole(0, 8)) {
    case 0:
      remove(place);
      break;
    case 1: {
      // A key twice, or a value twice.
      if (holder.kind === "array") holder.items.push(structuredClone(node));
      else
        holder.members.push([
          holder.members[index]?.[0] ?? '"x"',
          random.chance(0.5) ? structuredClone(node) : literal(random),
        ]);
      break;
    }
    case 2:
      if (holder.kind === "object")
        holder.members.push([random.pick(KEYS) ?? '"x"', literal(random)]);
      else holder.items.push(literal(random));
      break;
    case 3: {
      const member = holder.kind === "object" ? holder.members[index] : undefined;
      if (member !== undefined) member[0] = random.pick(KEYS) ?? '"x"';
      break;
    }
    case 4: {
      const foreign = placesIn(readTree(other) ?? literal(random));
      put(place, random.pick(foreign)?.node ?? literal(random));
      break;
    }
    case 5:
      // A copy: a value that held itself would never end.
      put(place, structuredClone(random.pick(places)?.node ?? literal(random)));
      break;
    case 6:
      put(place, nested(node, random));
      break;
    case 7:
      put(place, { kind: "text", text: `"${"x".repeat(random.pick(LONG) ?? 64)}"` });
      break;
    default:
      put(place, literal(random));
  }
  return writeTree(root);
}

/** Any value that stands for trouble. */
export function troubleOf(random: SimRandom): string {
  return random.pick(TEXTS) ?? "null";
}

function literal(random: SimRandom): Node {
  return { kind: "text", text: troubleOf(random) };
}

function nested(node: Node, random: SimRandom): Node {
  const depth = random.pick([1, 2, 8, 60, 61, 62, 63, 64, 65, 600, 20_000]);
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
  ] as const);
  return { kind: "text", text: open.repeat(depth) + writeTree(node) + close.repeat(depth) };
}
