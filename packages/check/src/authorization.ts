import type { Envelope } from "@harmovela/envelope";
import type { FindingSink } from "./finding.ts";
import { isObject } from "./record.ts";

/** The one kind of `authorization` that says something: a detached JWS (architecture, section 13). */
const KNOWN_SCHEME = "jws-detached";

/** What nobody can check is not accepted as if somebody had (spec 3.1, section 8). */
export function checkAuthorization(sink: FindingSink, { id, authorization }: Envelope): void {
  if (!isObject(authorization) || authorization.scheme === KNOWN_SCHEME) return;
  sink.add("authorization-scheme", `${id} is authorized by ${String(authorization.scheme)}`);
}
