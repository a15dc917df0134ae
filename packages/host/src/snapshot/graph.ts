/**
 * A state as lines of text, and back: a graph of plain objects, arrays, Maps, Sets and instances of
 * named classes, with everything that is shared or circular kept so, and every order kept.
 *
 * G1 Walked by a queue, never by recursion: lists may be as long as memory.
 * G2 A line is bounded (a collection goes on in further lines), so that it can be written and read piece by piece.
 * G3 What cannot be put back as it was (functions, symbols, instances of other classes) is refused when written.
 *
 * Each line is a JSON array. `["k", class, ...keys]` defines the next shape; `[shape, ...values, ...values]` holds
 * objects of it, one after the other (of a shape without keys: how many); `["a", ...]`, `["m", ...]`, `["s", ...]` begin
 * an array, a Map, a Set and `["+", ...]` goes on with it. Objects are numbered from 0 in the order of their lines.
 * A value is itself, but for strings that begin with `~`: `~7` is object 7, `~` undefined, `~!NaN` and the like a number
 * that JSON does not have, and `~~x` the string `~x`.
 */

/** Instances are put back with the prototype and their own fields; constructors do not run. */
export type SnapshotClasses = Readonly<Record<string, abstract new (...args: never[]) => object>>;

type Cell = string | number | boolean | null;
type Line = Cell[];

const CELLS_PER_LINE = 1_000;
const MARK = "~";
const MARK_CODE = 126;
const UNDEFINED = MARK;
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
  const walk = new Walk(root);
  const shapes = new WrittenShapes(classes);
  /** Objects of one shape gather here. */
  let line: Line = [];
  for (let object = walk.next(); object !== undefined; object = walk.next()) {
    const items = itemsOf(object);
    if (items !== undefined) {
      if (line.length > 0) yield JSON.stringify(line);
      line = [];
      yield* collection(items.kind, items.values, walk);
      continue;
    }
    const keys = Object.keys(object);
    const { shape, definition } = shapes.of(object, keys);
    if (line[0] !== shape || line.length > CELLS_PER_LINE) {
      if (line.length > 0) yield JSON.stringify(line);
      line = [shape];
    }
    if (definition !== undefined) yield definition;
    if (keys.length === 0) line[1] = Number(line[1] ?? 0) + 1;
    for (const key of keys) line.push(walk.cell((object as Record<string, unknown>)[key]));
  }
  if (line.length > 0) yield JSON.stringify(line);
}

/** Every object that was met, once, in the order of meeting (G1). */
class Walk {
  readonly #numbers = new Map<object, number>();
  readonly #queue: object[] = [];
  #at = 0;

  constructor(root: object) {
    this.cell(root);
  }

  next(): object | undefined {
    const object = this.#queue[this.#at];
    this.#at += 1;
    return object;
  }

  cell(value: unknown): Cell {
    switch (typeof value) {
      case "string":
        return value.charCodeAt(0) === MARK_CODE ? MARK + value : value;
      case "boolean":
        return value;
      case "number":
        if (Number.isFinite(value) && !Object.is(value, -0)) return value;
        return `${MARK}!${Object.is(value, -0) ? "-0" : value}`;
      case "undefined":
        return UNDEFINED;
      case "object":
        return value === null ? null : `${MARK}${this.#numberOf(value)}`;
      default:
        throw new TypeError(`a ${typeof value} cannot be part of a snapshot`);
    }
  }

  #numberOf(object: object): number {
    let number = this.#numbers.get(object);
    if (number === undefined) {
      number = this.#queue.push(object) - 1;
      this.#numbers.set(object, number);
    }
    return number;
  }
}

/** Shapes that have a line already. */
class WrittenShapes {
  readonly #names: ReadonlyMap<object, string>;
  readonly #byLength = new Map<number, { shape: number; name: string; keys: string[] }[]>();
  #count = 0;

  constructor(classes: SnapshotClasses) {
    this.#names = new Map(
      Object.entries(classes).map(([name, { prototype }]) => [prototype as object, name]),
    );
  }

  of(object: object, keys: string[]): { shape: number; definition?: string } {
    const name = classOf(object, this.#names);
    let known = this.#byLength.get(keys.length);
    if (known === undefined) {
      known = [];
      this.#byLength.set(keys.length, known);
    }
    for (const candidate of known) {
      if (candidate.name === name && candidate.keys.every((key, at) => key === keys[at])) {
        return candidate;
      }
    }
    const shape = this.#count;
    this.#count += 1;
    known.push({ shape, name, keys });
    return { shape, definition: JSON.stringify(["k", name, ...keys]) };
  }
}

interface Shape {
  keys: string[];
  create(): object;
}

/** What `encodeGraph` was given. Throws TypeError or SyntaxError when the lines are not what it wrote. */
export function decodeGraph(lines: Iterable<string>, classes: SnapshotClasses): object {
  const shapes: Shape[] = [];
  const objects: object[] = [];
  /** Lines with the number of the first object that they fill. */
  const contents: { line: Line; first: number }[] = [];
  for (const text of lines) {
    const line = JSON.parse(text) as Line;
    const kind = line[0];
    if (kind === "k") {
      const [, name, ...keys] = line as string[];
      shapes.push(readShape(String(name), keys, classes));
      continue;
    }
    contents.push({ line, first: kind === "+" ? objects.length - 1 : objects.length });
    if (kind === "a") objects.push([]);
    else if (kind === "m") objects.push(new Map());
    else if (kind === "s") objects.push(new Set());
    else if (kind !== "+") {
      const { keys, create } = atLeast(shapes[Number(kind)]);
      const count = keys.length === 0 ? Number(line[1]) : (line.length - 1) / keys.length;
      for (let made = 0; made < count; made += 1) objects.push(create());
    }
  }
  const value = (cell: Cell | undefined): unknown => {
    if (typeof cell === "object" && cell !== null) return atLeast(undefined);
    if (typeof cell !== "string" || cell.charCodeAt(0) !== MARK_CODE) return cell;
    if (cell === UNDEFINED) return undefined;
    if (cell.charCodeAt(1) === MARK_CODE) return cell.slice(1);
    if (cell[1] === "!") return atLeast(ODD_NUMBERS[cell.slice(2)]);
    return atLeast(objects[Number(cell.slice(1))]);
  };
  for (const { line, first } of contents) {
    const object = atLeast(objects[first]);
    const shape = typeof line[0] === "number" ? shapes[line[0]] : undefined;
    if (shape === undefined) fillCollection(object, line, value);
    else fillObjects(objects, first, line, shape.keys, value);
  }
  return atLeast(objects[0]);
}

function fillCollection(
  collection: object,
  line: Line,
  value: (cell: Cell | undefined) => unknown,
): void {
  if (Array.isArray(collection)) {
    for (let at = 1; at < line.length; at += 1) collection.push(value(line[at]));
  } else if (collection instanceof Map) {
    for (let at = 1; at < line.length; at += 2) {
      collection.set(value(line[at]), value(line[at + 1]));
    }
  } else if (collection instanceof Set) {
    for (let at = 1; at < line.length; at += 1) collection.add(value(line[at]));
  } else atLeast(undefined);
}

function fillObjects(
  objects: object[],
  first: number,
  line: Line,
  keys: string[],
  value: (cell: Cell | undefined) => unknown,
): void {
  if (keys.length === 0) return;
  let at = 1;
  for (let number = first; at < line.length; number += 1) {
    const object = objects[number] as Record<string, unknown>;
    // Each key is the object's own already, also one that is called `__proto__`.
    for (const key of keys) {
      object[key] = value(line[at]);
      at += 1;
    }
  }
}

/** Objects are copies of one that has all keys in their order, so that they share its layout in memory. */
function readShape(name: string, keys: string[], classes: SnapshotClasses): Shape {
  const prototype =
    name === PLAIN
      ? Object.prototype
      : name === WITHOUT_PROTOTYPE
        ? null
        : (atLeast(classes[name]).prototype as object);
  const properties: PropertyDescriptorMap = Object.create(null) as PropertyDescriptorMap;
  for (const key of keys) {
    properties[key] = { value: undefined, writable: true, enumerable: true, configurable: true };
  }
  const first = Object.create(Object.prototype, properties) as object;
  return {
    keys,
    create:
      prototype === Object.prototype
        ? () => ({ ...first })
        : () => Object.create(prototype, properties) as object,
  };
}

function itemsOf(object: object): { kind: "a" | "m" | "s"; values: Iterable<unknown> } | undefined {
  if (Array.isArray(object)) return { kind: "a", values: object };
  if (object instanceof Map) return { kind: "m", values: flat(object) };
  if (object instanceof Set) return { kind: "s", values: object };
  return undefined;
}

/** G2. */
function* collection(
  kind: "a" | "m" | "s",
  items: Iterable<unknown>,
  walk: Walk,
): Generator<string> {
  let line: Line = [kind];
  for (const item of items) {
    if (line.length > CELLS_PER_LINE) {
      yield JSON.stringify(line);
      line = ["+"];
    }
    line.push(walk.cell(item));
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

function classOf(object: object, names: ReadonlyMap<object, string>): string {
  const prototype = Object.getPrototypeOf(object) as object | null;
  if (prototype === Object.prototype) return PLAIN;
  if (prototype === null) return WITHOUT_PROTOTYPE;
  const name = names.get(prototype);
  if (name !== undefined) return name;
  throw new TypeError(`an instance of ${object.constructor.name} cannot be part of a snapshot`);
}

function atLeast<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("the snapshot is not as it was written");
  return value;
}
