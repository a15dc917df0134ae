/** What a replay is asked for, checked: a bad question is an `invalid_query`. */
import { type EntrySelection, isTypePattern } from "@harmovela/bus";
import { type Instant, isId, isInstant, parseInstant } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";

export interface ReplayQuestion {
  selection: EntrySelection;
  /** A number: exclusive. A time: with what is logged at that time or later. */
  from: number | "start" | "end" | { at: Instant };
  max: number;
}

/** Entries of one page: as many as an observer reads ahead by default. */
export const PAGE_ENTRIES_MAX = 256;
/** Longer than any registered type with room for wildcards. */
const TYPE_LENGTH_MAX = 256;
const FILTER_FIELDS: ReadonlySet<string> = new Set(["source", "target", "type"]);
const SEQUENCE = /^(?:0|[1-9]\d{0,14})$/;

/** Reads `{filter?, from, max?}` about one log. */
export function parseReplayQuestion(params: JsonObject, stream: string): ReplayQuestion {
  return {
    selection: selectionIn(params.filter),
    from: fromIn(params.from, stream),
    max: maxIn(params.max),
  };
}

function selectionIn(filter: JsonValue | undefined): EntrySelection {
  if (filter === undefined) return {};
  if (filter === null || typeof filter !== "object" || Array.isArray(filter))
    throw bad("filter must be an object of source, target and type");
  for (const field of Object.keys(filter))
    if (!FILTER_FIELDS.has(field)) throw bad("a filter has source, target and type, nothing else");
  const { source, target, type } = filter;
  return {
    ...(source === undefined ? {} : { source: nameIn(source, "source") }),
    ...(target === undefined ? {} : { target: nameIn(target, "target") }),
    ...(type === undefined ? {} : { type: typeIn(type) }),
  };
}

/** Whatever may name an agent in an envelope; what stands in a subject is escaped. */
function nameIn(value: JsonValue, field: string): string {
  if (typeof value === "string" && isId(value)) return value;
  throw bad(`filter.${field} must be an id`);
}

function typeIn(value: JsonValue): string {
  if (typeof value === "string" && value.length <= TYPE_LENGTH_MAX && isTypePattern(value))
    return value;
  throw bad("filter.type must be a pattern of segments, as in task.*");
}

function fromIn(from: JsonValue | undefined, stream: string): ReplayQuestion["from"] {
  if (from === "start" || from === "end") return from;
  if (typeof from === "string") {
    if (from.startsWith(`${stream}:`)) {
      const sequence = from.slice(stream.length + 1);
      if (SEQUENCE.test(sequence)) return Number(sequence);
    }
    if (isInstant(from)) return { at: parseInstant(from) };
  }
  throw bad(`from must be start, end, an RFC 3339 time or ${stream}:<sequence>`);
}

function maxIn(max: JsonValue | undefined): number {
  if (max === undefined) return PAGE_ENTRIES_MAX;
  if (typeof max === "number" && Number.isInteger(max) && max >= 0 && max <= PAGE_ENTRIES_MAX)
    return max;
  throw bad(`max must be a whole number from 0 to ${PAGE_ENTRIES_MAX}`);
}

function bad(message: string): HarmovelaError {
  return new HarmovelaError("invalid_query", message);
}
