/** Chance that can be repeated. */
import { env } from "node:process";

const VARIABLE = "HARMOVELA_CHAOS_SEED";

/** The seed of this run: from the environment, else a new one. */
export function chaosSeed(): number {
  const given = Number(env[VARIABLE]);
  return Number.isSafeInteger(given) && given > 0 ? given : 1 + Math.floor(Math.random() * 1e9);
}

/** How to run a file again with the same schedule. */
export function repeatCommand(seed: number, file: string): string {
  return `${VARIABLE}=${seed} node --conditions=development --import tsx --test ${file}`;
}

/** Numbers from 0 to 1 (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
