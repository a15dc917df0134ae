/** The subjects of this system (architecture, section 3): built and parsed here and nowhere else. */
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { decodeToken, encodeToken } from "./tokens.ts";

export { decodeToken, encodeToken } from "./tokens.ts";

/**
 * The longest subject that an intake takes, characters. Log subjects carry one name more and may be
 * longer; the server cuts the connection of whoever sends a command line over 4,096 bytes.
 */
export const INTAKE_SUBJECT_LENGTH_MAX = 2_048;
/** The longest subject that anything here publishes on, characters. */
export const SUBJECT_LENGTH_MAX = 3_584;
/** The longest reply subject that is answered, characters. */
export const REPLY_LENGTH_MAX = 1_024;

export const DOMAINS: readonly Domain[] = ["tasks", "beliefs", "interruptions", "provenance"];

export interface IntakeAddress {
  readonly tenant: string;
  readonly domain: Domain;
  readonly source: string;
  /** Undefined when the envelope names none. */
  readonly type: string | undefined;
}

export interface LogAddress {
  readonly tenant: string;
  readonly domain: Domain;
  readonly source: string;
  /** Undefined when the envelope names none. */
  readonly target: string | undefined;
  readonly type: string | undefined;
}

export interface RpcAddress {
  readonly tenant: string;
  readonly source: string;
  readonly domain: Domain;
  readonly verb: string;
}

export interface ControlAddress {
  /** Undefined for entries of the service as a whole. */
  readonly tenant: string | undefined;
  readonly domain: Domain;
  readonly kind: string;
}

/** Where an agent asks: `hv.<tenant>.in.<domain>.<source>.<type…>`. Throws when it would be too long. */
export function intakeSubject(to: Partial<IntakeAddress> & { tenant: string; domain: Domain }) {
  return bounded(
    `hv.${encodeToken(to.tenant)}.in.${to.domain}.${encodeToken(to.source)}.${typeTokens(to.type)}`,
    INTAKE_SUBJECT_LENGTH_MAX,
  );
}

/** Where the service appends: `hv.<tenant>.log.<domain>.<source>.<target>.<type…>`. */
export function logSubject(to: Partial<LogAddress> & { tenant: string; domain: Domain }): string {
  return entrySubject("log", to);
}

/** Where observers see the same: `hv.<tenant>.ev.<domain>.<source>.<target>.<type…>`. */
export function evSubject(to: Partial<LogAddress> & { tenant: string; domain: Domain }): string {
  return entrySubject("ev", to);
}

/** Which entries of one tenant's events in a log are meant; what is left out may be anything. */
export interface EntrySelection {
  readonly source?: string;
  readonly target?: string;
  /** Segments; `*` is one of them, a last `*` one or more. */
  readonly type?: string;
}

/** Segments that stand for themselves in a subject, and `*`. */
const TYPE_PATTERN = /^(?:\*|[a-z0-9_]+)(?:\.(?:\*|[a-z0-9_]+))*$/;

/** Whether a type can be selected by its subject. */
export function isTypePattern(type: string): boolean {
  return TYPE_PATTERN.test(type);
}

/**
 * The filter of these entries: in the log (`log`), or as observers hear them (`ev`). Names are escaped and a
 * type is a pattern of segments, so it never reaches another tenant, another domain or control entries.
 * Throws `invalid_argument` when the type is no pattern or the filter would be too long.
 */
export function entryFilter(
  space: "log" | "ev",
  to: { tenant: string; domain: Domain },
  { source, target, type = "*" }: EntrySelection = {},
): string {
  if (!isTypePattern(type))
    throw new HarmovelaError("invalid_argument", "that is no pattern of a type");
  const name = (text: string | undefined) => (text === undefined ? "*" : encodeToken(text));
  return bounded(
    `hv.${encodeToken(to.tenant)}.${space}.${to.domain}.${name(source)}.${name(target)}.${type.replace(/(^|\.)\*$/, "$1>")}`,
  );
}

/** Control entries, which are not republished: `hv.<tenant>.ctl.<domain>.<kind>`; no tenant is `-`. */
export function controlSubject(tenant: string | undefined, domain: Domain, kind: string): string {
  return bounded(`hv.${encodeToken(tenant)}.ctl.${domain}.${encodeToken(kind)}`);
}

/** Where the decisions on one tenant are recorded: on envelopes, on questions; and how far a domain is recorded. */
export function auditSubject(
  tenant: string | undefined,
  domain: Domain,
  kind: "judged" | "asked" | "upto",
): string {
  return bounded(`hv.${encodeToken(tenant)}.audit.${domain}.${kind}`);
}

/** Unjudged and not stored: `hv.<tenant>.live.<source>.<type…>`. */
export function liveSubject(to: { tenant: string; source: string; type: string }): string {
  return bounded(
    `hv.${encodeToken(to.tenant)}.live.${encodeToken(to.source)}.${typeTokens(to.type)}`,
  );
}

/** Reads and replays: `hv.<tenant>.rpc.<source>.<domain>.<verb>`. */
export function rpcSubject(to: RpcAddress): string {
  return bounded(
    `hv.${encodeToken(to.tenant)}.rpc.${encodeToken(to.source)}.${to.domain}.${encodeToken(to.verb)}`,
  );
}

/** Addresses read before: a sender uses the same few subjects again and again. */
const ADDRESSES = new Map<string, IntakeAddress | undefined>();
/** Then it starts anew; at the longest subjects some 8 MB. */
const ADDRESSES_MAX = 4_096;

/** Undefined when it is no intake subject, is too long, or is not spelled canonically. */
export function parseIntakeSubject(subject: string): IntakeAddress | undefined {
  if (subject.length > INTAKE_SUBJECT_LENGTH_MAX) return undefined;
  const known = ADDRESSES.get(subject);
  if (known !== undefined) return known;
  if (ADDRESSES.size >= ADDRESSES_MAX) ADDRESSES.clear();
  const address = readIntakeSubject(subject);
  ADDRESSES.set(subject, address);
  return address;
}

function readIntakeSubject(subject: string): IntakeAddress | undefined {
  const tokens = subject.split(".");
  if (tokens.length < 6 || tokens[0] !== "hv" || tokens[2] !== "in") return undefined;
  const tenant = decodeToken(tokens[1] ?? "");
  const domain = asDomain(tokens[3]);
  const source = decodeToken(tokens[4] ?? "");
  const type = parseType(tokens, 5);
  if (tenant === undefined || !domain || source === undefined || !type) return undefined;
  return { tenant, domain, source, type: type.name };
}

/** Undefined when it is no subject of the audit stream or is not spelled canonically. */
export function parseAuditSubject(
  subject: string,
): { tenant: string; domain: Domain; kind: string } | undefined {
  const [root, tenantToken = "", area, domainToken, kind = "", ...more] = subject.split(".");
  if (root !== "hv" || area !== "audit" || more.length > 0) return undefined;
  const tenant = decodeToken(tenantToken);
  const domain = asDomain(domainToken);
  if (tenant === undefined || domain === undefined || kind === "") return undefined;
  return { tenant, domain, kind };
}

/** Undefined when it is no log subject or is not spelled canonically. */
export function parseLogSubject(subject: string): LogAddress | undefined {
  return parseEntrySubject("log", subject);
}

/** Undefined when it is no observers' subject or is not spelled canonically. */
export function parseEvSubject(subject: string): LogAddress | undefined {
  return parseEntrySubject("ev", subject);
}

/** Undefined when it is no control subject or is not spelled canonically. */
export function parseControlSubject(subject: string): ControlAddress | undefined {
  const tokens = subject.split(".");
  if (tokens.length !== 5 || tokens[0] !== "hv" || tokens[2] !== "ctl") return undefined;
  const tenant = optionalName(tokens[1] ?? "");
  const domain = asDomain(tokens[3]);
  const kind = decodeToken(tokens[4] ?? "");
  if (!tenant || !domain || kind === undefined) return undefined;
  return { tenant: tenant.name, domain, kind };
}

/** Undefined when it is no subject of a read or is not spelled canonically. */
export function parseRpcSubject(subject: string): RpcAddress | undefined {
  const tokens = subject.split(".");
  if (tokens.length !== 6 || tokens[0] !== "hv" || tokens[2] !== "rpc") return undefined;
  const tenant = decodeToken(tokens[1] ?? "");
  const source = decodeToken(tokens[3] ?? "");
  const domain = asDomain(tokens[4]);
  const verb = decodeToken(tokens[5] ?? "");
  if (tenant === undefined || source === undefined || !domain || verb === undefined) {
    return undefined;
  }
  return { tenant, source, domain, verb };
}

/**
 * Whether an answer may go to `reply`: a subject that can be published on, strictly under `prefix`
 * (`_INBOX.`, or `_INBOX.<tenant>.<source>.`), token by token. Otherwise a question whose reply subject
 * is a log subject would make the service forge an entry.
 */
export function isUnderInbox(reply: string, prefix: string): boolean {
  const start = prefix.endsWith(".") ? prefix : `${prefix}.`;
  return (
    reply.length > start.length &&
    reply.length <= REPLY_LENGTH_MAX &&
    reply.startsWith(start) &&
    isPublishable(reply)
  );
}

/** Whether a plain subject can be published on: no wildcard, no empty token, no white space or control character. */
export function isPublishable(subject: string): boolean {
  return (
    subject.length <= SUBJECT_LENGTH_MAX &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not stand in a subject.
    /^[^\s\u0000-\u0020\u007f.*>]+(?:\.[^\s\u0000-\u0020\u007f.*>]+)*$/.test(subject)
  );
}

function entrySubject(
  space: "log" | "ev",
  to: Partial<LogAddress> & { tenant: string; domain: Domain },
): string {
  return bounded(
    `hv.${encodeToken(to.tenant)}.${space}.${to.domain}.${encodeToken(to.source)}.${encodeToken(to.target)}.${typeTokens(to.type)}`,
  );
}

function parseEntrySubject(space: "log" | "ev", subject: string): LogAddress | undefined {
  const tokens = subject.split(".");
  if (tokens.length < 7 || tokens[0] !== "hv" || tokens[2] !== space) return undefined;
  const tenant = decodeToken(tokens[1] ?? "");
  const domain = asDomain(tokens[3]);
  const source = decodeToken(tokens[4] ?? "");
  const target = optionalName(tokens[5] ?? "");
  const type = parseType(tokens, 6);
  if (tenant === undefined || !domain || source === undefined || !target || !type) {
    return undefined;
  }
  return { tenant, domain, source, target: target.name, type: type.name };
}

/** A type's dots separate tokens; an empty segment, like a missing type, is `-`. */
function typeTokens(type: string | undefined): string {
  if (type === undefined || type === "") return "-";
  if (PLAIN_TYPE.test(type)) return type;
  return type.split(".").map(encodeToken).join(".");
}
// A segment that starts with `-` takes the long way, because a lone `-` means absent.
const PLAIN_TYPE =
  /^[A-Za-z0-9_:@=/+~][A-Za-z0-9_:@=/+~-]*(?:\.[A-Za-z0-9_:@=/+~][A-Za-z0-9_:@=/+~-]*)*$/;

function parseType(tokens: string[], from: number): { name: string | undefined } | undefined {
  if (tokens.length === from + 1 && tokens[from] === "-") return { name: undefined };
  let name = "";
  for (let i = from; i < tokens.length; i++) {
    const token = tokens[i] ?? "";
    const segment = token === "-" ? "" : decodeToken(token);
    // A dot always parts two tokens, so it has no other spelling.
    if (segment === undefined || segment.includes(".")) return undefined;
    name = i === from ? segment : `${name}.${segment}`;
  }
  return { name };
}

/** Undefined when the spelling is not canonical; absent is a valid outcome. */
function optionalName(token: string): { name: string | undefined } | undefined {
  if (token === "-") return { name: undefined };
  const name = decodeToken(token);
  return name === undefined ? undefined : { name };
}

function asDomain(token: string | undefined): Domain | undefined {
  return DOMAINS.find((domain) => domain === token);
}

function bounded(subject: string, lengthMax = SUBJECT_LENGTH_MAX): string {
  if (subject.length <= lengthMax) return subject;
  throw new HarmovelaError(
    "invalid_argument",
    `a subject may have at most ${lengthMax} characters`,
  );
}
