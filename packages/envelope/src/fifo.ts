/** Places that may stand empty before the rest moves up. */
const EMPTY_MIN = 1024;

/** A queue; both ends cost O(1) amortised. Part of states, so there is nothing in it but plain data. */
export class Fifo<T> {
  items: (T | undefined)[] = [];
  /** Where the oldest one stands. */
  head = 0;

  get size(): number {
    return this.items.length - this.head;
  }

  peek(): T | undefined {
    return this.items[this.head];
  }

  push(item: T): void {
    this.items.push(item);
  }

  shift(): T | undefined {
    const item = this.items[this.head];
    if (item === undefined) return undefined;
    // What has left the queue must not be held by it.
    this.items[this.head] = undefined;
    this.head += 1;
    if (this.head >= EMPTY_MIN && 2 * this.head >= this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }
}
