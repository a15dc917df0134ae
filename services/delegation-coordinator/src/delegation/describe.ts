/** A canonical, JSON-able form of the delegations of a tenant: equal logs give equal descriptions. */
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { Delegation, DelegationBook } from "./state.ts";

export function describeDelegations({ byTask, byKey, tokens }: DelegationBook): JsonObject {
  return {
    byTask: sorted(byTask).map(([, delegation]) => describe(delegation)),
    byKey: sorted(byKey).map(([key, found]) => [key, found.taskId, found.seq]),
    tokens: sorted(tokens.known).map(([jti, { due, spentBy }]) => [jti, due, spentBy?.id ?? null]),
  };
}

function sorted<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

function describe(delegation: Delegation): JsonValue {
  const { task, timer, shelved, instance, ...plain } = delegation;
  return JSON.parse(
    JSON.stringify({
      ...plain,
      hasTask: task !== undefined,
      instance: instance?.session ?? null,
      due: timer?.due ?? null,
      shelved: typeof shelved === "object" ? shelved.due : (shelved ?? null),
    }),
  ) as JsonObject;
}
