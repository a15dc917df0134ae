/** Makes what broke a promise smaller while it still breaks the same one. */
import type { Input } from "./input.ts";

export interface ShrinkBounds {
  /** Further runs. */
  tries: number;
  /** Given up after this, milliseconds of `now`. */
  ms: number;
  now(): number;
}

/** The fewest and shortest inputs found; `breaks` must be true of `inputs`. */
export async function shrink(
  inputs: readonly Input[],
  breaks: (inputs: readonly Input[]) => Promise<boolean>,
  bounds: ShrinkBounds,
): Promise<readonly Input[]> {
  const until = bounds.now() + bounds.ms;
  let left = bounds.tries;
  const isSpent = (): boolean => left <= 0 || bounds.now() >= until;
  const holds = async (candidate: readonly Input[]): Promise<boolean> => {
    left -= 1;
    return await breaks(candidate);
  };
  const fewer = await shorten(inputs, (candidate) => holds(candidate), isSpent);
  const result: Input[] = [...fewer];
  for (const [index, input] of fewer.entries()) {
    for (const field of Object.keys(input)) {
      const units = [...(result[index]?.[field] ?? "")];
      const shorter = await shorten(
        units,
        (candidate) =>
          holds(result.with(index, { ...(result[index] ?? input), [field]: candidate.join("") })),
        isSpent,
      );
      result[index] = { ...(result[index] ?? input), [field]: shorter.join("") };
    }
  }
  return result;
}

/** Leaves out runs of items, long ones first, while `holds`. */
async function shorten<T>(
  items: readonly T[],
  holds: (candidate: T[]) => Promise<boolean>,
  isSpent: () => boolean,
): Promise<readonly T[]> {
  let kept = [...items];
  for (let size = kept.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < kept.length; ) {
      if (isSpent()) return kept;
      const candidate = [...kept.slice(0, at), ...kept.slice(at + size)];
      if (await holds(candidate)) kept = candidate;
      else at += size;
    }
  }
  return kept;
}
