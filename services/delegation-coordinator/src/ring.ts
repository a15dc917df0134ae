export { Ring, type RingItem } from "@harmovela/envelope";
