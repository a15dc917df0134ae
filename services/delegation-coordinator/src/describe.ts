/** A canonical, JSON-able form of the state: equal logs give equal descriptions. */
import type { JsonObject, JsonValue } from "@harmovela/failure";
import { describeDelegations } from "./delegation/describe.ts";
import { describeFamilies } from "./families/describe.ts";
import type { PlanState, Task, TaskState } from "./state.ts";

function byKey<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map.keys()].sort().flatMap((key) => map.get(key) ?? []);
}

function idsOf(first: Task | undefined, next: "nextSibling" | "nextLive"): string[] {
  const ids: string[] = [];
  for (let at = first; at; at = at[next]) ids.push(at.id);
  return ids;
}

function describeTask(task: Task): JsonObject {
  return {
    id: task.id,
    state: task.state,
    parent: task.parent?.id ?? null,
    depth: task.depth,
    submitter: task.submitter,
    target: task.target ?? null,
    owner: task.owner ?? null,
    instance: describeInstance(task),
    isFree: task.isFree,
    session: task.session ?? null,
    namesTenant: task.namesTenant,
    isSubmitted: task.isSubmitted,
    deadline: task.deadline?.due ?? null,
    isGivenUp: task.deadline?.isGivenUp ?? false,
    submittedSeq: task.submittedSeq,
    lastSeq: task.lastSeq,
    lastAt: task.lastAt,
    hold: task.hold ? (JSON.parse(JSON.stringify(task.hold)) as JsonObject) : null,
    cancelRequested: task.cancelRequested ?? null,
    endPromised: task.endPromised,
    childCount: task.childCount,
    forgottenCount: task.forgottenCount,
    children: idsOf(task.firstChild, "nextSibling"),
    live: idsOf(task.firstLive, "nextLive"),
    ended: task.ended ? (JSON.parse(JSON.stringify(task.ended)) as JsonObject) : null,
    entries: task.entries,
    entryCount: task.entryCount,
  };
}

function describeInstance({ instance, ringNext, asleepUnder }: Task): JsonValue {
  if (instance === undefined) return null;
  return {
    session: instance.session,
    isOver: instance.isOver,
    lostBy: instance.lost?.by ?? null,
    isGivenUp: ringNext === undefined && asleepUnder === undefined,
  };
}

function describePlan(plan: PlanState): JsonObject {
  return {
    id: plan.id,
    root: plan.root.id,
    kind: plan.kind,
    hard: plan.hard,
    at: plan.at,
    seq: plan.seq,
    graceDue: plan.grace?.due ?? null,
  };
}

/** What is remembered for a while, oldest first. */
function overOf({ over }: TaskState): JsonValue {
  return over.items.slice(over.head).flatMap((item) => {
    if (item === undefined) return [];
    const id =
      item.kind === "task"
        ? item.task.id
        : item.kind === "offer"
          ? item.delegation.taskId
          : item.compensation.taskId;
    return [[item.kind, item.tenant.name, id, item.at]];
  });
}

/** Everything that matters of the state; not the order in which due work would be served. */
export function describeState(state: TaskState): JsonValue {
  const tenants = byKey(state.tenants).map((tenant) => ({
    tenant: tenant.name,
    instances: [...tenant.instances.keys()].sort(),
    tasks: byKey(tenant.tasks).map(describeTask),
    plans: byKey(tenant.plans).map(describePlan),
    delegations: describeDelegations(tenant.delegations),
    compensations: byKey(tenant.compensations).map((known) => JSON.parse(JSON.stringify(known))),
  }));
  return {
    tenants,
    over: overOf(state),
    families: describeFamilies(state.families),
  };
}
