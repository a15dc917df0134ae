/**
 * Which process of an agent has which task: an instance is a session that its agent has opened, as in
 * the domain `tasks` (spec 5.1, 5.4).
 *
 * N1 An instance holds what nothing stops; so the end of its session owes exactly what it holds.
 * N2 What is owed then is owed one by one: the end of a session costs the same whatever it had.
 */
import {
  type DomainEntry,
  type Envelope,
  type EventEntry,
  endInstance,
  openInstance,
  Ring,
} from "@harmovela/envelope";
import type { Instance, ManagerState, TaskRecord, TenantState } from "../state.ts";

/** The instance that sends an event: of a session that is live and its own. */
export function instanceOf(
  state: ManagerState,
  tenant: TenantState,
  envelope: Envelope,
): Instance | undefined {
  return openInstance(state.sessions, tenant, envelope, (session) => ({
    kind: "instance",
    session,
    tenant,
    tasks: new Ring(),
    endedBy: undefined,
    ringNext: undefined,
    ringPrev: undefined,
  }));
}

/** Whether the sender speaks in another session than the one that has the task, or in none. */
export function isElsewhere(
  instance: Instance | undefined,
  session: string | undefined,
): instance is Instance {
  return instance !== undefined && instance.endedBy === undefined && instance.session !== session;
}

/**
 * From now on the task is this instance's, or with none its agent's. One whose session is over already
 * owes at once what it is given.
 */
export function giveTo(
  state: ManagerState,
  task: TaskRecord,
  instance: Instance | undefined,
): void {
  task.leftBy = undefined;
  if (task.instance === instance) return;
  letGo(state, task);
  task.instance = instance;
  if (instance === undefined || isSeenTo(task)) return;
  instance.tasks.add(task);
  if (instance.endedBy) state.ring.add(instance);
}

/** It has ended, or something stops or ends it. */
function isSeenTo({ ended, open, plan, asked }: TaskRecord): boolean {
  return Boolean(ended || open || plan || asked);
}

/** Any process of its owner may go on with it; the first one that does will have it. */
export function leave(state: ManagerState, task: TaskRecord, seq: number): void {
  giveTo(state, task, undefined);
  task.leftBy = seq;
}

/** Work on a task that was left; what was judged before the resumption was seen there does not count. */
export function takeUp(
  state: ManagerState,
  task: TaskRecord,
  { envelope, seen }: EventEntry,
): void {
  const { leftBy, owner, tenant } = task;
  if (leftBy === undefined || envelope.source !== owner) return;
  if ((seen.interruptions ?? 0) < leftBy) return;
  giveTo(state, task, instanceOf(state, tenant, envelope));
}

/** Puts a task where N1 wants it; after every change of what stops it. */
export function place(state: ManagerState, task: TaskRecord): void {
  const { instance } = task;
  if (instance === undefined) return;
  if (isSeenTo(task)) letGo(state, task);
  else if (instance.endedBy === undefined) instance.tasks.add(task);
}

function letGo(state: ManagerState, task: TaskRecord): void {
  const { instance } = task;
  if (instance === undefined) return;
  instance.tasks.remove(task);
  if (instance.tasks.head === undefined) state.ring.remove(instance);
}

/**
 * Follows the end of a session; the session book has folded the entry before. It is noted whatever the
 * settings say, so that all folds note the same.
 */
export function followSessionEnd(state: ManagerState, entry: DomainEntry): void {
  const ended = endInstance(state.sessions, state.tenants, entry);
  if (ended === undefined) return;
  const { instance } = ended;
  const { envelope, at } = ended.entry;
  instance.endedBy = { id: envelope.id, type: envelope.type, at };
  if (instance.tasks.head) state.ring.add(instance);
}

/** What instances had whose sessions are over may be owed under the settings of now. */
export function wakeInstances(state: ManagerState): void {
  for (const { tasks } of state.tenants.values()) {
    for (const { instance } of tasks.values()) {
      if (instance?.endedBy && instance.tasks.head) state.ring.add(instance);
    }
  }
}
