/** Cuts a text without parting a surrogate pair, so that it stays valid Unicode. */
export function bounded(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const last = text.charCodeAt(lengthMax - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? lengthMax - 1 : lengthMax);
}
