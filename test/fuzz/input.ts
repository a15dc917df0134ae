/**
 * One input of a target: named fields of bytes, each as a string of units 0 to 255, so that whatever is
 * found can be kept as JSON and read by people.
 */
export type Input = Readonly<Record<string, string>>;

/** The bytes of a field. */
export function toBytes(field = ""): Uint8Array {
  return Buffer.from(field, "latin1");
}

/** A field that holds these bytes. */
export function ofBytes(bytes: Uint8Array | string): string {
  const raw = typeof bytes === "string" ? Buffer.from(bytes, "utf8") : Buffer.from(bytes);
  return raw.toString("latin1");
}

/** What a reader makes of a field; bytes that are no UTF-8 are replaced. */
export function toText(field = ""): string {
  return Buffer.from(field, "latin1").toString("utf8");
}
