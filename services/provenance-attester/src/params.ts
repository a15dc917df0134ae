/** The questions of reads, checked: a bad one is an `invalid_query`. */
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

export function eventParam(params: JsonObject): string {
  const { event_id: id } = params;
  if (typeof id === "string" && id !== "") return id;
  throw new HarmovelaError("invalid_query", "event_id must be a non-empty string");
}

export function flagParam(params: JsonObject, name: string): boolean {
  const value = params[name] ?? false;
  if (typeof value === "boolean") return value;
  throw new HarmovelaError("invalid_query", `${name} must be true or false`);
}

export function wholeParam(
  params: JsonObject,
  name: string,
  { fallback, max }: { fallback: number; max: number },
): number {
  const value = params[name] ?? fallback;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) {
    return value;
  }
  throw new HarmovelaError("invalid_query", `${name} must be a whole number from 1 to ${max}`);
}

const ACTIONS = ["irreversible", "reversible"] as const;
export type Action = (typeof ACTIONS)[number];

/** What somebody is about to do; irreversible when nothing is said. */
export function actionParam({ action = "irreversible" }: JsonObject): Action {
  const found = ACTIONS.find((known) => known === action);
  if (found !== undefined) return found;
  throw new HarmovelaError("invalid_query", `action must be one of ${ACTIONS.join(", ")}`);
}
