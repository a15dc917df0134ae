/** A canonical, JSON-able form of the state: equal logs give equal descriptions. */
import { describeSessions } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type {
  Compensation,
  Interruption,
  ManagerState,
  Offer,
  TaskRecord,
  TenantState,
} from "./state.ts";

/** Everything that matters of the state; not the order in which due work would be served. */
export function describeState(state: ManagerState): JsonObject {
  return {
    sessions: describeSessions(state.sessions),
    tenants: byKey(state.tenants).map(describeTenant),
    graces: state.graces.size,
    endings: [...state.endings.keys()].sort(),
    requests: byKey(state.requests).map(({ id, envelope, attempt, due }) => ({
      id,
      type: envelope.type,
      task: envelope.task_id ?? null,
      cause: envelope.causation_id ?? null,
      attempt,
      due,
    })),
    over: state.over.size,
  };
}

function byKey<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map.keys()].sort().flatMap((key) => map.get(key) ?? []);
}

function describeTenant(tenant: TenantState): JsonObject {
  return {
    name: tenant.name,
    tasks: byKey(tenant.tasks).map(describeTask),
    open: [...tenant.open.keys()].sort(),
    plans: [...tenant.plans.keys()].sort(),
    instances: byKey(tenant.instances).map(({ session, tasks }) => {
      const held = [...tasks.backwards()].map(({ id }) => id).sort();
      return { session, held };
    }),
    compensations: byKey(tenant.compensations).map(describeCompensation),
    keys: [...tenant.compensationByKey.keys()].sort(),
  };
}

function describeTask(task: TaskRecord): JsonObject {
  return {
    id: task.id,
    isExternal: task.isExternal,
    isSubmitted: task.isSubmitted,
    parent: task.parent?.id ?? null,
    submitter: task.submitter ?? null,
    target: task.target ?? null,
    owner: task.owner ?? null,
    namesTenant: task.namesTenant,
    state: task.state,
    ended: task.ended?.id ?? null,
    offer: task.offer ? describeOffer(task.offer) : null,
    session: task.instance?.session ?? null,
    isFree: task.isFree,
    sessionEndedBy: task.instance?.endedBy?.id ?? null,
    isHeld: task.ringNext !== undefined,
    childCount: task.childCount,
    live: liveOf(task),
    open: task.open ? describeInterruption(task.open) : null,
    past: (task.past ?? []).map(describeInterruption),
    checkpoints: [...(task.checkpoints?.values() ?? [])].map((one) => JSON.stringify(one)),
    plan: task.plan?.id ?? null,
    asked: (task.asked ?? []).map(({ id }) => id),
  };
}

function liveOf(task: TaskRecord): string[] {
  const ids: string[] = [];
  for (let child = task.firstLive; child; child = child.nextLive) ids.push(child.id);
  return ids;
}

function describeOffer({ instance, ...offer }: Offer): JsonObject {
  const { targetBefore, delegatedTo, ...rest } = offer;
  return {
    ...rest,
    targetBefore: targetBefore ?? null,
    delegatedTo: delegatedTo ?? null,
    session: instance?.session ?? null,
  };
}

function describeInterruption(interruption: Interruption): JsonObject {
  const { id, policy, state, at, requestedBy, graceMs, isExpiry, treeOf, tree } = interruption;
  const { acknowledged, saved, closed } = interruption;
  return {
    id,
    policy,
    state,
    at,
    requestedBy,
    graceMs: graceMs ?? null,
    isExpiry,
    treeOf: treeOf ?? null,
    tree: tree?.members.map((member) => member.id) ?? null,
    acknowledged: acknowledged?.id ?? null,
    saved: saved?.id ?? null,
    closed: closed ? `${closed.type} ${closed.id}` : null,
  };
}

function describeCompensation(compensation: Compensation): JsonObject {
  const { id, taskId, original, requestedBy, request, task, refused, completed } = compensation;
  return {
    id,
    taskId,
    original,
    requestedBy,
    request: request?.id ?? null,
    task: task?.id ?? null,
    refused: refused?.code ?? null,
    completed: completed?.id ?? null,
  };
}
