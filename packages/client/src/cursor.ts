/** Positions in logs as text, `<stream>:<sequence>` (spec 9.3). */
import { DOMAINS, logStream } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";

export interface Position {
  domain: Domain;
  seq: number;
}

const FORM = /^(HV_LOG_[A-Z]+):(0|[1-9]\d{0,14})$/;

export function formatCursor({ domain, seq }: Position): string {
  return `${logStream(domain)}:${seq}`;
}

/** Undefined when the text is no position in a log. */
export function parseCursor(text: string): Position | undefined {
  const match = FORM.exec(text);
  const domain = DOMAINS.find((known) => logStream(known) === match?.[1]);
  return domain === undefined ? undefined : { domain, seq: Number(match?.[2]) };
}

/** Throws `invalid_argument` for a text that is no position in a log. */
export function toPosition(text: string): Position {
  const position = parseCursor(text);
  if (position) return position;
  throw new HarmovelaError("invalid_argument", "a cursor has the form <stream>:<sequence>");
}
