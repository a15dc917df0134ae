/** A query that carries a handoff token is asked by the one to whom the task came (spec 5.9, 7). */
import type { DecideContext, Decision, Judged } from "@harmovela/envelope";
import { taskIdOf } from "../rules/identity.ts";
import type { TaskSettings } from "../settings.ts";
import type { TaskState } from "../state.ts";
import { shownTokenRefusal } from "./handoff.ts";
import { findDelegation } from "./state.ts";

/** Refuses a query whose token proves nothing; undefined when there is nothing to refuse. */
export function refuseQueryToken(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  { now }: DecideContext,
): Decision | undefined {
  const { envelope, tenant, token } = input;
  if (envelope.type !== "query.requested" || envelope.handoff_token === undefined) return undefined;
  const claimed = token?.kind === "verified" ? token.claims.task_id : undefined;
  const id = taskIdOf(envelope) ?? (typeof claimed === "string" ? claimed : undefined);
  const delegation = id === undefined ? undefined : findDelegation(state, tenant, id);
  const refused = shownTokenRefusal(state, settings, input, delegation, now);
  return refused && { reject: refused, as: "query.rejected" };
}
