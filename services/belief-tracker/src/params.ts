/** The questions of reads, checked: a bad one is an `invalid_query`. */
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

/** Claims that one answer lists. */
export const LIMIT = 1000;

export function optionalTextParam(params: JsonObject, name: string): string | undefined {
  const value = params[name];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw new HarmovelaError("invalid_query", `${name} must be a non-empty string`);
}

export function limitParam({ limit }: JsonObject): number {
  if (limit === undefined) return LIMIT;
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= LIMIT) {
    return limit;
  }
  throw new HarmovelaError("invalid_query", `limit must be a whole number from 1 to ${LIMIT}`);
}
