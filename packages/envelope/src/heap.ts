/** What the heap orders by: the due time, then the log position that set it. */
export interface HeapItem {
  readonly due: number;
  readonly order: number;
  /** Place in the heap, kept by the heap; -1 outside it. */
  index: number;
}

function isBefore(a: HeapItem, b: HeapItem): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}

/**
 * A binary heap whose items know their place, so that any of them is removed in O(log n). A part of the
 * state: a snapshot puts an instance back field by field, so it has no private members.
 */
export class Heap<T extends HeapItem> {
  /** The heap's own. */
  readonly items: T[] = [];

  get size(): number {
    return this.items.length;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  /** Everything due by an instant, in no order; costs what it finds. */
  dueBy(due: number): T[] {
    const found: T[] = [];
    const places = [0];
    for (let place = places.pop(); place !== undefined; place = places.pop()) {
      const item = this.items[place];
      if (item === undefined || item.due > due) continue;
      found.push(item);
      places.push(2 * place + 1, 2 * place + 2);
    }
    return found;
  }

  add(item: T): void {
    if (item.index >= 0) return;
    this.items.push(item);
    item.index = this.items.length - 1;
    rise(this.items, item);
  }

  remove(item: T): void {
    const index = item.index;
    if (index < 0) return;
    item.index = -1;
    const last = this.items.pop();
    if (last === undefined || last === item) return;
    place(this.items, last, index);
    rise(this.items, last);
    sink(this.items, last);
  }
}

function place<T extends HeapItem>(items: T[], item: T, index: number): void {
  items[index] = item;
  item.index = index;
}

function rise<T extends HeapItem>(items: T[], item: T): void {
  while (item.index > 0) {
    const above = (item.index - 1) >> 1;
    const parent = items[above];
    if (parent === undefined || !isBefore(item, parent)) return;
    place(items, parent, item.index);
    place(items, item, above);
  }
}

function sink<T extends HeapItem>(items: T[], item: T): void {
  for (;;) {
    const left = items[2 * item.index + 1];
    const right = items[2 * item.index + 2];
    const least = left && right && isBefore(right, left) ? right : left;
    if (least === undefined || !isBefore(least, item)) return;
    const below = least.index;
    place(items, least, item.index);
    place(items, item, below);
  }
}
