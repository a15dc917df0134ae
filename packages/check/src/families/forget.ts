/** Takes out what is older than the log that held it; the oldest comes first. */
export function forgetOld(map: Map<string, { readonly at: number }>, before: number): void {
  for (const [key, { at }] of map) {
    if (at >= before) return;
    map.delete(key);
  }
}
