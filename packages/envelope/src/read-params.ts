/** The questions of reads, checked: a bad one is an `invalid_query`. */
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

/** A non-empty text that must be there. */
export function textParam(params: JsonObject, name: string): string {
  return optionalTextParam(params, name) ?? refuse(`${name} must be a non-empty string`);
}

export function optionalTextParam(params: JsonObject, name: string): string | undefined {
  const value = params[name];
  if (value === undefined || (typeof value === "string" && value !== "")) return value;
  return refuse(`${name} must be a non-empty string`);
}

/** A whole number from `min` to `max`; `fallback` when it is left out. */
export function wholeParam<T extends number | undefined>(
  params: JsonObject,
  name: string,
  { min, max, fallback }: { min: number; max: number; fallback: T },
): number | T {
  const value = params[name];
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  return refuse(`${name} must be a whole number from ${min} to ${max}`);
}

/** False when it is left out. */
export function flagParam(params: JsonObject, name: string): boolean {
  const value = params[name] ?? false;
  return typeof value === "boolean" ? value : refuse(`${name} must be true or false`);
}

function refuse(message: string): never {
  throw new HarmovelaError("invalid_query", message);
}
