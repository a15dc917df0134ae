import { HarmovelaError, type JsonObject } from "@harmovela/failure";

const ACTIONS = ["irreversible", "reversible"] as const;
export type Action = (typeof ACTIONS)[number];

/** What somebody is about to do; irreversible when nothing is said. Anything else is an `invalid_query`. */
export function actionParam({ action = "irreversible" }: JsonObject): Action {
  const found = ACTIONS.find((known) => known === action);
  if (found !== undefined) return found;
  throw new HarmovelaError("invalid_query", `action must be one of ${ACTIONS.join(", ")}`);
}
