import { URI_MAX } from "./limits.ts";

const PCHAR = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})";
const USER_INFO = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*";
const REG_NAME = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*";
const QUERY = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*";
const IPV6 = "\\[[0-9A-Fa-f:.]{2,45}\\]";
const AUTHORITY = `(?:${USER_INFO}@)?(?:${IPV6}|${REG_NAME})(?::\\d*)?`;

/** RFC 3986 `URI`: a scheme, then authority and path, or a path that is not empty; query; fragment. */
export const URI_PATTERN = new RegExp(
  `^[A-Za-z][A-Za-z0-9+.\\-]*:(?://${AUTHORITY}(?:/${PCHAR}*)*|/(?:${PCHAR}+(?:/${PCHAR}*)*)?|${PCHAR}+(?:/${PCHAR}*)*)(?:\\?${QUERY})?(?:#${QUERY})?$`,
);

const BRACKETED = /\[([^\]]*)\]/;

/** Whether a value is an absolute URI of at most 2,048 characters. References without a scheme are none. */
export function isUri(value: unknown): value is string {
  if (typeof value !== "string" || value.length > URI_MAX || !URI_PATTERN.test(value)) return false;
  const address = BRACKETED.exec(value)?.[1];
  return address === undefined || URL.canParse(`http://[${address}]/`);
}
