/** What an observer wants to see: all given fields must match, within one any of its values (spec 5.3). */
import { DOMAINS, type EntrySelection, isTypePattern, type LogAddress } from "@harmovela/bus";
import { type Domain, domainOf, type Envelope, familyOf } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { isObject } from "./rejected-error.ts";

type OneOrMore = string | readonly string[];

/** An empty list counts as absent. Nothing given: everything of the tenant. */
export interface Filter {
  /**
   * Patterns of segments: `*` is one segment, a trailing `.*` one or more, a lone `*` everything.
   */
  types?: OneOrMore;
  source?: OneOrMore;
  target?: OneOrMore;
  topic?: OneOrMore;
  session_id?: OneOrMore;
  conversation_id?: OneOrMore;
  task_id?: OneOrMore;
  /** Default: those that the types can occur in. */
  domains?: readonly Domain[];
}

const BODY_FIELDS = ["topic", "session_id", "conversation_id"] as const;

export class Matcher {
  readonly domains: readonly Domain[];
  /** Equal for filters that say the same. */
  readonly key: string;
  readonly #types: readonly string[];
  readonly #sources: readonly string[];
  readonly #targets: readonly string[];
  readonly #tasks: readonly string[];
  readonly #patterns: readonly RegExp[];
  readonly #body: readonly { field: (typeof BODY_FIELDS)[number]; values: readonly string[] }[];

  /** Throws `invalid_argument` for a field that is not text or a list of texts. */
  constructor(filter: Filter) {
    this.#types = valuesOf(filter, "types");
    this.#sources = valuesOf(filter, "source");
    this.#targets = valuesOf(filter, "target");
    this.#tasks = valuesOf(filter, "task_id");
    this.#patterns = this.#types.map(toPattern);
    this.#body = BODY_FIELDS.map((field) => ({ field, values: valuesOf(filter, field) })).filter(
      ({ values }) => values.length > 0,
    );
    this.domains = domainsOf(filter.domains, this.#types);
    this.key = JSON.stringify([
      this.domains,
      this.#types,
      this.#sources,
      this.#targets,
      this.#tasks,
      this.#body,
    ]);
  }

  /** Decides on the subject alone, which the service has compared with the body. */
  matchesAddress({ source, target, type }: LogAddress): boolean {
    return (
      isIn(this.#sources, source) &&
      isIn(this.#targets, target) &&
      (this.#patterns.length === 0 || this.#patterns.some((pattern) => pattern.test(type ?? "")))
    );
  }

  matchesBody(envelope: Envelope): boolean {
    return (
      isIn(this.#tasks, taskOf(envelope)) &&
      this.#body.every(({ field, values }) => isIn(values, envelope[field]))
    );
  }

  /** What can be selected by subjects alone: one source, one target, one pattern. */
  get selection(): EntrySelection {
    const source = onlyOf(this.#sources);
    const target = onlyOf(this.#targets);
    const type = onlyOf(this.#types);
    return {
      ...(source === undefined ? {} : { source }),
      ...(target === undefined ? {} : { target }),
      ...(type === undefined || !isTypePattern(type) ? {} : { type }),
    };
  }
}

/** The task that an event is about: of the envelope, else of its payload (spec 5.4). */
export function taskOf({ task_id, payload }: Envelope): string | undefined {
  if (task_id !== undefined) return task_id;
  const inPayload = isObject(payload) ? payload.task_id : undefined;
  return typeof inPayload === "string" ? inPayload : undefined;
}

function valuesOf(filter: Filter, field: Exclude<keyof Filter, "domains">): readonly string[] {
  const given: unknown = filter[field];
  if (given === undefined) return [];
  const values: unknown[] = Array.isArray(given) ? given : [given];
  if (values.every((value) => typeof value === "string" && value !== "")) return values as string[];
  throw new HarmovelaError("invalid_argument", `${field} must be a text or a list of texts`);
}

function domainsOf(
  given: readonly Domain[] | undefined,
  types: readonly string[],
): readonly Domain[] {
  if (given !== undefined) {
    if (given.length > 0 && given.every((domain) => DOMAINS.includes(domain))) return given;
    throw new HarmovelaError("invalid_argument", `domains must be some of ${DOMAINS.join(", ")}`);
  }
  const families = types.map(familyOf);
  // A service's refusals stand in its own log, whatever the family of their type.
  const isAnywhere = families.some((family) => family === "*" || family === "event");
  if (families.length === 0 || isAnywhere) return DOMAINS;
  return DOMAINS.filter((domain) => types.some((type) => domainOf(type) === domain));
}

function toPattern(text: string): RegExp {
  if (text === "*") return /^/;
  const segments = text.split(".");
  const last = segments.length - 1;
  const parts = segments.map((segment, index) => {
    if (segment !== "*") return segment.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return index === last ? "[^.]+(?:\\.[^.]+)*" : "[^.]+";
  });
  return new RegExp(`^${parts.join("\\.")}$`);
}

function onlyOf(values: readonly string[]): string | undefined {
  return values.length === 1 ? values[0] : undefined;
}

function isIn(values: readonly string[], value: unknown): boolean {
  return values.length === 0 || (typeof value === "string" && values.includes(value));
}
