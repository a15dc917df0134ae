import type { Instant } from "@harmovela/envelope";

/** A generation is closed when it is this old and large, … */
const GENERATION_MS_MIN = 600_000;
const GENERATION_SIZE = 125_000;
/** … at the latest when it is this old (eight of them make the 24 hours of the promise), … */
const GENERATION_MS_MAX = 3 * 3_600_000;
/** … and at once when a flood would make it larger than this: at most 4 million ids are remembered. */
const GENERATION_SIZE_MAX = 500_000;
const GENERATIONS = 8;

export interface Generation {
  from: Instant;
  seqs: Map<string, number>;
}

/**
 * Which event ids are occupied, and by which log entry (architecture, sections 4 and 6): at least
 * ten minutes, at most 24 hours of them. Evicts by the entries' own time, so every fold evicts alike.
 */
export class OutcomeMemory {
  readonly #generations: Generation[];

  /** `generations`: of a memory that was saved. */
  constructor(generations: Generation[] = []) {
    this.#generations = generations;
  }

  /** What a snapshot keeps of it: the very thing, newest first. */
  get generations(): Generation[] {
    return this.#generations;
  }

  /** Position of the entry that settled this id, newest first. */
  get(tenant: string, id: string): number | undefined {
    const key = toKey(tenant, id);
    for (const generation of this.#generations) {
      const seq = generation.seqs.get(key);
      if (seq !== undefined) return seq;
    }
    return undefined;
  }

  set(tenant: string, id: string, seq: number, at: Instant): void {
    let newest = this.#generations[0];
    if (newest === undefined || isFull(newest, at)) {
      newest = { from: at, seqs: new Map() };
      this.#generations.unshift(newest);
      if (this.#generations.length > GENERATIONS) this.#generations.pop();
    }
    newest.seqs.set(toKey(tenant, id), seq);
  }

  get size(): number {
    return this.#generations.reduce((sum, generation) => sum + generation.seqs.size, 0);
  }
}

/** Ids and tenants hold no control characters, so the pair is unambiguous. */
const toKey = (tenant: string, id: string): string => `${tenant}\u0000${id}`;

function isFull(generation: Generation, at: Instant): boolean {
  const age = at - generation.from;
  const { size } = generation.seqs;
  return (
    age >= GENERATION_MS_MAX ||
    size >= GENERATION_SIZE_MAX ||
    (age >= GENERATION_MS_MIN && size >= GENERATION_SIZE)
  );
}
