/** What the subject of a stored message says (architecture, section 3). Read here independently. */
export type LogSubject =
  | {
      area: "log";
      tenant: string;
      domain: string;
      source: string | undefined;
      target: string | undefined;
      type: string;
    }
  | { area: "ctl"; tenant: string | undefined; domain: string; kind: string };

const PLAIN = /^[A-Za-z0-9_:@=/+~-]+$/;
const ESCAPED = /^(?:[A-Za-z0-9_:@=/+~-]|%[0-9A-F]{2})+$/;

/** The text of a token; undefined for an absent one (`-`), false when it is not canonical. */
function decodeToken(token: string): string | undefined | false {
  if (token === "-") return undefined;
  if (PLAIN.test(token)) return token;
  if (!ESCAPED.test(token)) return false;
  let text: string;
  try {
    text = decodeURIComponent(token);
  } catch {
    return false;
  }
  return encodeToken(text) === token ? text : false;
}

const encoder = new TextEncoder();

/** A token for a text: plain bytes as they are, everything else %XX. */
export function encodeToken(text: string | undefined): string {
  if (text === undefined) return "-";
  if (text === "-") return "%2D";
  if (PLAIN.test(text)) return text;
  let token = "";
  for (const byte of encoder.encode(text)) {
    const char = String.fromCharCode(byte);
    token += PLAIN.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return token;
}

/** Undefined when it is no canonical log or control subject. */
export function parseSubject(subject: string): LogSubject | undefined {
  const tokens = subject.split(".");
  const [root, tenantToken, area, domain, fourth, fifth] = tokens;
  if (root !== "hv" || tenantToken === undefined || !domain || fourth === undefined) {
    return undefined;
  }
  const tenant = decodeToken(tenantToken);
  if (tenant === false) return undefined;
  if (area === "ctl") {
    return tokens.length === 5 ? { area, tenant, domain, kind: fourth } : undefined;
  }
  if (area !== "log" || fifth === undefined || tokens.length < 7 || tenant === undefined) {
    return undefined;
  }
  const source = decodeToken(fourth);
  const target = decodeToken(fifth);
  if (source === false || target === false) return undefined;
  let type = "";
  for (let index = 6; index < tokens.length; index += 1) {
    const segment = decodeToken(tokens[index] ?? "");
    if (segment === false || segment === undefined || segment.includes(".")) return undefined;
    type = type === "" ? segment : `${type}.${segment}`;
  }
  return { area, tenant, domain, source, target, type };
}
