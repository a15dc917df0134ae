/**
 * A state as lines of text, and back: a graph of plain objects, arrays, Maps, Sets and instances of
 * named classes, with everything that is shared or circular kept so, and every order kept.
 *
 * G1 Walked by a queue, never by recursion: lists may be as long as memory.
 * G2 A line is bounded (a collection goes on in further lines), so that it can be written and read piece by piece.
 * G3 What cannot be put back as it was (functions, symbols, instances of other classes) is refused when written.
 *
 * Each line is a JSON array. `["k", class, ...keys]` defines the next shape; `[shape, ...values]` is an
 * object of it; `["a", ...]`, `["m", ...]`, `["s", ...]` begin an array, a Map, a Set and `["+", ...]` goes on
 * with it. Objects are numbered from 0 in the order of their lines. A value is itself, or `[n]`: object n; `[]`:
 * undefined; `["NaN"]` and the like: a number that JSON does not have.
 */

/** Instances are put back with the prototype and their own fields; constructors do not run. */
export type SnapshotClasses = Readonly<Record<string, abstract new (...args: never[]) => object>>;

type Cell = string | number | boolean | null | [] | [number] | [string];
type Line = (Cell | undefined)[];

const ITEMS_PER_LINE = 1_000;
const PLAIN = "";
const WITHOUT_PROTOTYPE = "null";
const ODD_NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
  "-0": -0,
};

/** The lines of everything that can be reached from `root`, which is the first object. Throws TypeError (G3). */
export function* encodeGraph(root: object, classes: SnapshotClasses): Generator<string> {
  const names = new Map<object, string>(
    Object.entries(classes).map(([name, { prototype }]) => [prototype as object, name]),
  );
  const numbers = new Map<object, number>([[root, 0]]);
  const queue: object[] = [root];
  const shapes = new Map<string, number>();

  const cell = (value: unknown): Cell => {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "number":
        return toNumberCell(value);
      case "undefined":
        return [];
      case "object": {
        if (value === null) return null;
        let number = numbers.get(value);
        if (number === undefined) {
          number = queue.push(value) - 1;
          numbers.set(value, number);
        }
        return [number];
      }
      default:
        throw new TypeError(`a ${typeof value} cannot be part of a snapshot`);
    }
  };

  for (let next = 0; next < queue.length; next += 1) {
    const object = queue[next] as object;
    if (Array.isArray(object)) yield* collection("a", object, cell);
    else if (object instanceof Map) yield* collection("m", flat(object), cell);
    else if (object instanceof Set) yield* collection("s", object, cell);
    else {
      const keys = Object.keys(object);
      const name = classOf(object, names);
      const signature = JSON.stringify([name, ...keys]);
      let shape = shapes.get(signature);
      if (shape === undefined) {
        shape = shapes.size;
        shapes.set(signature, shape);
        yield JSON.stringify(["k", name, ...keys]);
      }
      const line: Line = [shape];
      for (const key of keys) line.push(cell((object as Record<string, unknown>)[key]));
      yield JSON.stringify(line);
    }
  }
}

/** What `encodeGraph` was given. Throws TypeError or SyntaxError when the lines are not what it wrote. */
export function decodeGraph(lines: Iterable<string>, classes: SnapshotClasses): object {
  const shapes: { prototype: object | null; keys: string[] }[] = [];
  const objects: object[] = [];
  /** One for each object, and those that go on with it. */
  const contents: Line[][] = [];
  const begin = (object: object, line: Line): void => {
    objects.push(object);
    contents.push([line]);
  };
  for (const text of lines) {
    const line = JSON.parse(text) as Line;
    const kind = line[0];
    if (kind === "k") {
      const [, name, ...keys] = line as string[];
      shapes.push({ prototype: prototypeOf(String(name), classes), keys });
    } else if (kind === "a") begin([], line);
    else if (kind === "m") begin(new Map(), line);
    else if (kind === "s") begin(new Set(), line);
    else if (kind === "+") atLeast(contents.at(-1)).push(line);
    else begin(Object.create(atLeast(shapes[Number(kind)]).prototype) as object, line);
  }
  const value = (cell: Cell | undefined): unknown => {
    if (!Array.isArray(cell)) return cell;
    const [inner] = cell;
    if (inner === undefined) return undefined;
    if (typeof inner === "number") return atLeast(objects[inner]);
    return atLeast(ODD_NUMBERS[inner]);
  };
  objects.forEach((object, number) => {
    for (const line of contents[number] ?? []) fill(object, line, shapes[Number(line[0])], value);
    contents[number] = [];
  });
  return atLeast(objects[0]);
}

function fill(
  object: object,
  line: Line,
  shape: { keys: string[] } | undefined,
  value: (cell: Cell | undefined) => unknown,
): void {
  if (Array.isArray(object)) {
    for (let at = 1; at < line.length; at += 1) object.push(value(line[at]));
  } else if (object instanceof Map) {
    for (let at = 1; at < line.length; at += 2) object.set(value(line[at]), value(line[at + 1]));
  } else if (object instanceof Set) {
    for (let at = 1; at < line.length; at += 1) object.add(value(line[at]));
  } else {
    const { keys } = atLeast(shape);
    for (let at = 0; at < keys.length; at += 1) {
      setOwn(object, keys[at] as string, value(line[at + 1]));
    }
  }
}

/** Keys come from agents: one may be `__proto__`. */
function setOwn(object: object, key: string, value: unknown): void {
  if (key !== "__proto__") (object as Record<string, unknown>)[key] = value;
  else {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
}

function* collection(
  kind: "a" | "m" | "s",
  items: Iterable<unknown>,
  cell: (value: unknown) => Cell,
): Generator<string> {
  let line: Line = [kind];
  for (const item of items) {
    if (line.length > ITEMS_PER_LINE) {
      yield JSON.stringify(line);
      line = ["+"];
    }
    line.push(cell(item));
  }
  yield JSON.stringify(line);
}

/** Keys and values in turn; an even number fits into a line. */
function* flat(map: Map<unknown, unknown>): Generator<unknown> {
  for (const [key, value] of map) {
    yield key;
    yield value;
  }
}

function toNumberCell(value: number): Cell {
  if (Number.isFinite(value) && !Object.is(value, -0)) return value;
  return [Object.is(value, -0) ? "-0" : String(value)];
}

function classOf(object: object, names: ReadonlyMap<object, string>): string {
  const prototype = Object.getPrototypeOf(object) as object | null;
  if (prototype === Object.prototype) return PLAIN;
  if (prototype === null) return WITHOUT_PROTOTYPE;
  const name = names.get(prototype);
  if (name !== undefined) return name;
  throw new TypeError(`an instance of ${object.constructor.name} cannot be part of a snapshot`);
}

function prototypeOf(name: string, classes: SnapshotClasses): object | null {
  if (name === PLAIN) return Object.prototype;
  if (name === WITHOUT_PROTOTYPE) return null;
  return atLeast(classes[name]).prototype as object;
}

function atLeast<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("the snapshot is not as it was written");
  return value;
}
