/** Takes out what nobody used since a time; the longest unused comes first. */
export function forgetOld(map: Map<string, { readonly at: number }>, before: number): void {
  for (const [key, { at }] of map) {
    if (at >= before) return;
    map.delete(key);
  }
}

/** What there still is: used since a time, whether or not it was taken out. */
export function notOld<T extends { readonly at: number }>(
  found: T | undefined,
  before: number,
): T | undefined {
  return found !== undefined && found.at >= before ? found : undefined;
}
