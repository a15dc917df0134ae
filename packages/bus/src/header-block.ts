/** The header block of a NATS message: `NATS/1.0`, one line per header, an empty line. */
import { HarmovelaError } from "@harmovela/failure";
import type { Headers } from "./port.ts";

const decoder = new TextDecoder();

const NAME = /^[!-9;-~]+$/;
const LINE_BREAK = /[\r\n]/;

/** The lines of `headers`; throws `invalid_argument` on what would break out of its line. */
export function headerLines(headers: Headers): string {
  let lines = "";
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!NAME.test(name) || LINE_BREAK.test(value)) {
      throw new HarmovelaError("invalid_argument", "a header has a forbidden character");
    }
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** The whole block, as text, around lines that `headerLines` made; with a status of the server's own. */
export function headerText(lines: string, status = ""): string {
  return status === "" ? `NATS/1.0\r\n${lines}\r\n` : `NATS/1.0 ${status}\r\n${lines}\r\n`;
}

export const EMPTY_BLOCK = headerText("");

/** The whole block as it travels. */
export function headerBlock(lines: string): Uint8Array {
  return Buffer.from(headerText(lines));
}

/** The value of a header in a block as text, trimmed; "" when absent. The name is case-sensitive. */
export function headerValue(block: string, name: string): string {
  const at = block.indexOf(`\r\n${name}:`);
  if (at < 0) return "";
  const start = at + name.length + 3;
  const end = block.indexOf("\r\n", start);
  return block.slice(start, end < 0 ? undefined : end).trim();
}

export function decodeBlock(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
