/** A member of a ring; the links are the ring's. */
export interface RingItem<T> {
  ringNext: T | undefined;
  ringPrev: T | undefined;
}

/**
 * A round robin: the head is served, then moved behind all others. Every operation is O(1). A part of the
 * state: a snapshot puts an instance back field by field, so it has no private members.
 */
export class Ring<T extends RingItem<T>> {
  /** The ring's own. */
  first: T | undefined;

  get head(): T | undefined {
    return this.first;
  }

  get last(): T | undefined {
    return this.first?.ringPrev;
  }

  /** The items from the last to the first. */
  *backwards(): Generator<T> {
    let item = this.last;
    while (item) {
      yield item;
      item = item === this.first ? undefined : item.ringPrev;
    }
  }

  /** Puts an item last; an item that is in the ring keeps its place. */
  add(item: T): void {
    if (item.ringNext !== undefined) return;
    const head = this.first;
    if (head === undefined) {
      item.ringNext = item;
      item.ringPrev = item;
      this.first = item;
      return;
    }
    const tail = head.ringPrev ?? head;
    item.ringNext = head;
    item.ringPrev = tail;
    tail.ringNext = item;
    head.ringPrev = item;
  }

  remove(item: T): void {
    const next = item.ringNext;
    const prev = item.ringPrev;
    if (next === undefined || prev === undefined) return;
    item.ringNext = undefined;
    item.ringPrev = undefined;
    if (next === item) {
      this.first = undefined;
      return;
    }
    prev.ringNext = next;
    next.ringPrev = prev;
    if (this.first === item) this.first = next;
  }

  /** Moves an item behind all others. */
  rotate(item: T): void {
    if (item.ringNext === undefined) return;
    this.remove(item);
    this.add(item);
  }
}
