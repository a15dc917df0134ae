import { setTimeout as pass } from "node:timers/promises";

/** The promise's value, or an error that names what did not happen in time. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not within ${ms} ms: ${what}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks again and again until there is an answer, or the time is over. */
export async function eventually<T>(
  ms: number,
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const until = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > until) throw new Error(`not within ${ms} ms: ${what}`);
    await pass(20);
  }
}
