/**
 * Scopes (spec 9.7). `read:` and `write:` name a domain, or with a colon a participant: whoever has scopes of
 * the second kind hears, or addresses, only these. `subscribe:` names a pattern of types (spec 5.3).
 * Anything else of this form is the application's: nothing here asks for it.
 */
import type { Domain, Grants } from "./judging.ts";
import { domainOf, familyOf } from "./registry.ts";
import { isId } from "./text.ts";

/** Scopes of one agent; they travel in a header and in `session.ready`. */
export const SCOPES_MAX = 64;
/** Roles of one agent. */
export const ROLES_MAX = 16;

const DOMAINS: readonly Domain[] = ["tasks", "beliefs", "interruptions", "provenance"];
const ALL = "*";
const FORM = /^([a-z][a-z0-9_-]*):(.+)$/;
/** Segments of a pattern that a type can match. */
const PATTERN = /^(?:[a-z0-9_]+|\*)(?:\.(?:[a-z0-9_]+|\*))*$/;

type Verb = "read" | "write";

/** What is said of somebody to whom no scope was named: everything of its tenant. */
export const EVERY_SCOPE: readonly string[] = ["read:*", "write:*", "subscribe:*"];

/** Why a text is no scope; undefined when it is one. */
export function scopeProblem(scope: string): string | undefined {
  const [, verb, rest = ""] = FORM.exec(scope) ?? [];
  if (verb === undefined || !isId(scope)) return "a scope is <verb>:<what>";
  if (verb === "subscribe") return PATTERN.test(rest) ? undefined : "that is no pattern of types";
  if (verb !== "read" && verb !== "write") return undefined;
  if (rest.includes(":") || isDomainScope(rest)) return undefined;
  return `${verb}: names one of ${DOMAINS.join(", ")}, * or a participant such as agent:worker`;
}

function isDomainScope(rest: string): boolean {
  return rest === ALL || DOMAINS.some((domain) => domain === rest);
}

/** Domains that the scopes allow to read or to write. */
export function domainsIn({ scopes }: Pick<Grants, "scopes">, verb: Verb): readonly Domain[] {
  if (scopes === undefined) return DOMAINS;
  return DOMAINS.filter((domain) => has(scopes, verb, domain) || has(scopes, verb, ALL));
}

/** Participants to which the scopes confine; undefined when they do not. */
export function participantsIn(
  { scopes }: Pick<Grants, "scopes">,
  verb: Verb,
): readonly string[] | undefined {
  const named = scopes
    ?.filter((scope) => scope.startsWith(`${verb}:`))
    .map((scope) => scope.slice(verb.length + 1))
    .filter((rest) => rest.includes(":"));
  return named === undefined || named.length === 0 ? undefined : named;
}

/** Whether somebody may send to a domain. */
export function mayWrite(grants: Pick<Grants, "scopes">, domain: Domain): boolean {
  return domainsIn(grants, "write").includes(domain);
}

/**
 * Whether somebody may ask what a domain knows. An answer tells what everybody has said, so who is confined
 * to some participants may not ask.
 */
export function mayRead(grants: Pick<Grants, "scopes">, domain: Domain): boolean {
  return domainsIn(grants, "read").includes(domain) && participantsIn(grants, "read") === undefined;
}

/** Whether a scope is one of those granted, or a part of one. */
export function isGranted({ scopes }: Pick<Grants, "scopes">, scope: string): boolean {
  if (scopes === undefined || scopes.includes(scope)) return true;
  const [, verb = "", rest = ""] = FORM.exec(scope) ?? [];
  if (verb === "subscribe") return patternGap(scopes, rest) === undefined;
  return (verb === "read" || verb === "write") && isDomainScope(rest) && has(scopes, verb, ALL);
}

/**
 * The scope that somebody lacks for a filter of a subscription (spec 5.3, 9.7); undefined when it may
 * subscribe. A pattern is covered when one `subscribe:` scope matches everything that it can match and
 * every domain in which that can be logged may be read. No types: every type.
 */
export function subscriptionGap(
  grants: Pick<Grants, "scopes">,
  filter: { types: readonly string[]; sources: readonly string[] },
): string | undefined {
  const { scopes } = grants;
  if (scopes === undefined) return undefined;
  const patterns = filter.types.length === 0 ? [ALL] : filter.types;
  for (const pattern of patterns) {
    const gap = patternGap(scopes, pattern);
    if (gap !== undefined) return gap;
  }
  const readable = domainsIn(grants, "read");
  const domain = patterns.flatMap(domainsOf).find((needed) => !readable.includes(needed));
  if (domain !== undefined) return `read:${domain}`;
  const named = participantsIn(grants, "read");
  if (named === undefined) return undefined;
  if (filter.sources.length === 0) return "read:*";
  const source = filter.sources.find((wanted) => !named.includes(wanted));
  return source === undefined ? undefined : `read:${source}`;
}

function patternGap(scopes: readonly string[], pattern: string): string | undefined {
  const isCovered = scopes.some(
    (scope) => scope.startsWith("subscribe:") && covers(scope.slice(10), pattern),
  );
  return isCovered ? undefined : `subscribe:${pattern}`;
}

/** Where events of a pattern can be logged: refusals of any envelope stand in each log. */
function domainsOf(pattern: string): readonly Domain[] {
  if (!PATTERN.test(pattern)) return DOMAINS;
  const family = familyOf(pattern);
  return family === ALL || family === "event" ? DOMAINS : [domainOf(pattern)];
}

/** Whether one pattern matches every type that another can match (spec 5.3). */
export function covers(wide: string, narrow: string): boolean {
  if (wide === ALL) return true;
  // What is no pattern may mean anything to whoever reads it.
  if (!PATTERN.test(narrow)) return false;
  const [outer, inner] = [shapeOf(wide), shapeOf(narrow)];
  if (outer.isOpen ? inner.fixed.length < outer.fixed.length : inner.isOpen) return false;
  if (!outer.isOpen && inner.fixed.length !== outer.fixed.length) return false;
  // One or more segments must be left for what is open.
  if (outer.isOpen && !inner.isOpen && inner.fixed.length === outer.fixed.length) return false;
  return outer.fixed.every((segment, at) => segment === ALL || segment === inner.fixed[at]);
}

/** Segments that stand for one each, and whether one or more follow. */
function shapeOf(pattern: string): { fixed: readonly string[]; isOpen: boolean } {
  const segments = pattern.split(".");
  const isOpen = segments.at(-1) === ALL;
  return { fixed: isOpen ? segments.slice(0, -1) : segments, isOpen };
}

function has(scopes: readonly string[], verb: Verb, rest: string): boolean {
  return scopes.includes(`${verb}:${rest}`);
}
