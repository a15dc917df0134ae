/**
 * One rule, three uses: a quick verdict for every message, the place and words of a refusal, and a
 * zod schema from which the JSON Schemas are written. Each rule is stated once here, and a property
 * test holds the verdict to the schema.
 */
import { z } from "zod";
import { DURATION_PATTERN, isDuration } from "./duration.ts";
import { INSTANT_PATTERN, isInstant } from "./instant.ts";
import { ID_BYTES_MAX, INSTANT_TEXT_MAX, LIST_MAX, SPAN_MS_MAX, URI_MAX } from "./limits.ts";
import { isId } from "./text.ts";
import { isUri, URI_PATTERN } from "./uri.ts";

export interface Field {
  readonly schema: z.ZodType;
  /** What is wanted, as the end of the sentence "<path> must be …". */
  readonly expected: string;
  accepts(value: unknown): boolean;
  /** The first place inside a refused value that is wrong; absent for plain values. */
  locate?(value: unknown, path: string): Fault;
}

export interface Fault {
  path: string;
  expected: string;
  /** Nothing is there. */
  isMissing?: boolean;
}

export type Fields = Readonly<Record<string, Field>>;

/** An object rule that can be asked for its parts. */
export interface ObjectField extends Field {
  readonly fields: ReadonlyMap<string, Field>;
  locate(value: unknown, path: string): Fault;
}

/** Where a value that `field` refuses is wrong. */
export function faultOf(field: Field, value: unknown, path: string): Fault {
  return field.locate?.(value, path) ?? { path, expected: field.expected };
}

function leaf(expected: string, schema: z.ZodType, accepts: (value: unknown) => boolean): Field {
  return { expected, schema, accepts };
}

/** Any JSON value, but the key must be there when it is required. */
export const anything: Field = leaf(
  "present",
  z.unknown().refine((value) => value !== undefined),
  (value) => value !== undefined,
);

/** A key that may not be there. */
export const absent: Field = leaf("left out", z.never(), () => false);

export const text: Field = leaf("a string", z.string(), (value) => typeof value === "string");

export const flag: Field = leaf(
  "true or false",
  z.boolean(),
  (value) => typeof value === "boolean",
);

export const nonEmptyText: Field = textOf(1, Number.POSITIVE_INFINITY);

export function textOf(min: number, max: number): Field {
  const bounded = Number.isFinite(max) ? z.string().min(min).max(max) : z.string().min(min);
  const expected = Number.isFinite(max)
    ? `a string of ${min} to ${max} characters`
    : "a non-empty string";
  return leaf(
    expected,
    bounded,
    (value) => typeof value === "string" && value.length >= min && value.length <= max,
  );
}

export const id: Field = leaf(
  "a string of 1 to 128 bytes without control characters",
  z
    .string()
    .min(1)
    .max(ID_BYTES_MAX)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses.
    .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/)
    .refine(isId),
  isId,
);

export const instant: Field = leaf(
  "an RFC 3339 date-time with a zone",
  z
    .string()
    .max(INSTANT_TEXT_MAX)
    .refine(isInstant)
    .meta({ format: "date-time", pattern: INSTANT_PATTERN.source }),
  isInstant,
);

export const duration: Field = leaf(
  "an ISO 8601 duration such as PT5M",
  z.string().refine(isDuration).meta({ pattern: DURATION_PATTERN.source }),
  isDuration,
);

export const uri: Field = leaf(
  "a URI with a scheme",
  z.string().max(URI_MAX).refine(isUri).meta({ format: "uri", pattern: URI_PATTERN.source }),
  isUri,
);

/** A number of the closed interval 0 to 1. */
export const ratio: Field = leaf(
  "a number from 0 to 1",
  z.number().min(0).max(1),
  (value) => typeof value === "number" && value >= 0 && value <= 1,
);

export const number: Field = leaf("a finite number", z.number(), (value) => Number.isFinite(value));

export const nonNegative: Field = leaf(
  "a number of at least 0",
  z.number().min(0),
  (value) => Number.isFinite(value) && (value as number) >= 0,
);

export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Field {
  return leaf(
    `a whole number from ${min} to ${max}`,
    z.number().int().min(min).max(max),
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
  );
}

/** Milliseconds to wait: 0 means at once, and there is no value that means never. */
export const spanMs: Field = integer(0, SPAN_MS_MAX);

export const anyObject: Field = leaf("an object", z.looseObject({}), isRecord);

export function oneOf(...words: [string, ...string[]]): Field {
  const set: ReadonlySet<unknown> = new Set(words);
  const expected = words.length === 1 ? `"${words[0]}"` : `one of ${words.join(", ")}`;
  return leaf(expected, z.enum(words), (value) => set.has(value));
}

export function nullable(field: Field): Field {
  return {
    expected: `${field.expected}, or null`,
    schema: field.schema.nullable(),
    accepts: (value) => value === null || field.accepts(value),
  };
}

export function either(first: Field, second: Field): Field {
  return {
    expected: `${first.expected} or ${second.expected}`,
    schema: z.union([first.schema, second.schema]),
    accepts: (value) => first.accepts(value) || second.accepts(value),
  };
}

export function list(item: Field, min = 0, max: number = LIST_MAX): Field {
  const expected = `an array of ${min} to ${max} items`;
  const hasLength = (value: unknown): value is unknown[] =>
    Array.isArray(value) && value.length >= min && value.length <= max;
  return {
    expected,
    schema: z.array(item.schema).min(min).max(max),
    accepts(value) {
      if (!hasLength(value)) return false;
      for (const entry of value) if (!item.accepts(entry)) return false;
      return true;
    },
    locate(value, path) {
      if (!hasLength(value)) return { path, expected };
      const index = value.findIndex((entry) => !item.accepts(entry));
      return faultOf(item, value[index], `${path}[${index}]`);
    },
  };
}

/** An object whose unknown keys are allowed and kept. A key in both tables is required. */
export function object(required: Fields, optional: Fields = {}): ObjectField {
  const fields = new Map(Object.entries({ ...required, ...optional, ...required }));
  const names = Object.keys(required);
  const shape: Record<string, z.ZodType> = {};
  for (const [name, field] of Object.entries(optional)) shape[name] = field.schema.optional();
  for (const [name, field] of Object.entries(required)) shape[name] = field.schema;
  return {
    expected: "an object",
    schema: z.looseObject(shape),
    fields,
    accepts(value) {
      if (!isRecord(value)) return false;
      for (const name of names) if (value[name] === undefined) return false;
      // Walks the keys that are there: most of what may be there is not.
      for (const name in value) {
        const field = fields.get(name);
        if (field === undefined) continue;
        const part = value[name];
        if (part !== undefined && !field.accepts(part)) return false;
      }
      return true;
    },
    locate(value, path) {
      if (!isRecord(value)) return { path, expected: "an object" };
      for (const [name, field] of fields) {
        const part = value[name];
        const where = path === "" ? name : `${path}.${name}`;
        if (part === undefined) {
          if (Object.hasOwn(required, name))
            return { path: where, expected: field.expected, isMissing: true };
        } else if (!field.accepts(part)) {
          return faultOf(field, part, where);
        }
      }
      return { path, expected: "an object" };
    },
  };
}

/** A JSON object: no array, not null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
