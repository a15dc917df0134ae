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
  findSession,
  isTerminalSession,
  Ring,
  sessionIdOf,
} from "@harmovela/envelope";
import type { Instance, ManagerState, TaskRecord, TenantState } from "../state.ts";

/** The instance that sends an event: of a session that is live and its own. */
export function instanceOf(
  state: ManagerState,
  tenant: TenantState,
  { session_id: id, source }: Envelope,
): Instance | undefined {
  if (id === undefined) return undefined;
  const known = tenant.instances.get(id);
  const session = findSession(state.sessions, tenant.name, id);
  if (session?.initiator !== source || isTerminalSession(session)) return undefined;
  if (known) return known;
  const instance: Instance = {
    kind: "instance",
    session: session.id,
    tenant,
    tasks: new Ring(),
    endedBy: undefined,
    ringNext: undefined,
    ringPrev: undefined,
  };
  tenant.instances.set(id, instance);
  return instance;
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
  task.isFree = false;
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
  if (entry.kind !== "event" || !entry.envelope.type.startsWith("session.")) return;
  const { envelope, tenant: name, at } = entry;
  const id = sessionIdOf(envelope);
  const tenant = state.tenants.get(name);
  const instance = id === undefined ? undefined : tenant?.instances.get(id);
  if (id === undefined || tenant === undefined || instance === undefined) return;
  const session = findSession(state.sessions, name, id);
  if (session && !isTerminalSession(session)) return;
  tenant.instances.delete(id);
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
