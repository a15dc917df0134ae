export { Heap, type HeapItem } from "@harmovela/envelope";
