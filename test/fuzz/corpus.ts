/** Inputs worth changing: each brought something new when it was run. */
import type { SimRandom } from "@harmovela/testkit";
import type { Input } from "./input.ts";

/** Beyond it a new one takes the place of any other; what they brought stays known. */
const KEPT_MAX = 8_000;
/** Of a batch that reached new blocks without a new outcome: any of them may have done it. */
const KEPT_FOR_BLOCKS = 4;

export class Corpus {
  readonly #kept: Input[] = [];
  readonly #features = new Map<string, number>();

  get size(): number {
    return this.#kept.length;
  }

  /** How many different outcomes there were. */
  get outcomes(): number {
    return this.#features.size;
  }

  /** Each outcome and how often it came, most frequent first. */
  tally(): [string, number][] {
    return [...this.#features].sort(([, a], [, b]) => b - a);
  }

  pick(random: SimRandom): Input | undefined {
    return random.pick(this.#kept);
  }

  /** Keeps those whose outcome is new and, when blocks were reached that are new, a few of the rarest besides. */
  learn(
    inputs: readonly Input[],
    features: readonly string[],
    newBlocks: number,
    random: SimRandom,
  ): void {
    const rest: { input: Input; count: number }[] = [];
    for (const [index, input] of inputs.entries()) {
      const feature = features[index] ?? "";
      const count = this.#features.get(feature) ?? 0;
      this.#features.set(feature, count + 1);
      if (count === 0) this.#keep(input, random);
      else rest.push({ input, count });
    }
    if (newBlocks === 0) return;
    rest.sort((a, b) => a.count - b.count);
    for (const { input } of rest.slice(0, KEPT_FOR_BLOCKS)) this.#keep(input, random);
  }

  #keep(input: Input, random: SimRandom): void {
    if (this.#kept.length < KEPT_MAX) this.#kept.push(input);
    else this.#kept[random.whole(0, KEPT_MAX - 1)] = input;
  }
}
