/** Everything that a state holds on to, found by following whatever there is. */
import { Fifo, Heap, Ring } from "@harmovela/envelope";

/** All objects that can be reached from a value, each once. */
export function reachable(from: object): Set<object> {
  const found = new Set<object>([from]);
  for (const at of found) {
    for (const next of heldBy(at)) {
      if (typeof next === "object" && next !== null) found.add(next);
    }
  }
  return found;
}

function heldBy(value: object): Iterable<unknown> {
  if (value instanceof Map) return [...value.keys(), ...value.values()];
  if (value instanceof Set || Array.isArray(value)) return value;
  if (value instanceof Heap) return value.dueBy(Number.POSITIVE_INFINITY);
  // The members of a ring hold each other.
  if (value instanceof Ring) return [value.head];
  if (value instanceof Fifo || Object.getPrototypeOf(value) === Object.prototype) {
    return Object.values(value);
  }
  throw new Error(`a state holds a ${value.constructor.name}`);
}
