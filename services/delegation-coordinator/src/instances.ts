/**
 * Which process of an agent has which task. Processes of one name each speak in a session of their
 * own, so an instance of an agent is a session that it has opened (spec 5.1, 5.4, 5.6).
 *
 * N1 A task that is taken in such a session is that instance's. Taken otherwise it is the agent's.
 * N2 The end of the session gives it back to the agent: another instance may go on with it.
 * N3 A session that was lost owes the failure of every task it had, where the setting says so. They
 *    are owed one by one, so that the end of a session costs the same whatever it had.
 * N4 A task that is stopped does not fail with its session: another process resumes it.
 */
import { type DomainEntry, type Envelope, endInstance, openInstance } from "@harmovela/envelope";
import { isStopped } from "./interruptions/state.ts";
import { Ring } from "./ring.ts";
import { payloadObject } from "./rules/identity.ts";
import type { InstanceState, PlanState, Task, TaskState, TenantState } from "./state.ts";

/** The instance that sends an event: of a session that is live and its own (N1). */
export function instanceOf(
  state: TaskState,
  tenant: TenantState,
  envelope: Envelope,
): InstanceState | undefined {
  return openInstance(state.families.sessions, tenant, envelope, (session) => ({
    kind: "instance",
    session,
    tasks: new Ring(),
    isOver: false,
    lost: undefined,
    ringNext: undefined,
    ringPrev: undefined,
  }));
}

/** Whether the sender speaks in another session than the one that has it, or in none (N1, N2). */
export function isElsewhere(
  instance: InstanceState | undefined,
  session: string | undefined,
): instance is InstanceState {
  return instance !== undefined && !instance.isOver && instance.session !== session;
}

/** From now on the task is this instance's, or with none its agent's. */
export function giveTo(state: TaskState, task: Task, instance: InstanceState | undefined): void {
  task.isFree = false;
  if (task.instance === instance) return;
  takeBack(state, task);
  task.instance = instance;
  if (instance) hold(state, instance, task);
}

/** The task is no instance's any more. */
export function takeBack(state: TaskState, task: Task): void {
  const { instance } = task;
  if (instance === undefined) return;
  letBe(state, task);
  task.instance = undefined;
  state.ring.rotate(instance);
}

/** Nothing is owed of it, whatever has become of its instance. */
export function letBe(state: TaskState, task: Task): void {
  task.asleepUnder?.orphans.delete(task);
  task.asleepUnder = undefined;
  task.instance?.tasks.remove(task);
  if (task.instance && !task.instance.tasks.head) state.ring.remove(task.instance);
}

/** A task of a lost instance must not fail by itself while the plan is under way. */
export function layAside(state: TaskState, task: Task, plan: PlanState): void {
  letBe(state, task);
  task.asleepUnder = plan;
  plan.orphans.add(task);
}

/** The plan under which it slept is over. */
export function pickUp(state: TaskState, task: Task): void {
  letBe(state, task);
  if (task.instance) hold(state, task.instance, task);
}

function hold(state: TaskState, instance: InstanceState, task: Task): void {
  // N4.
  if (isStopped(task)) return;
  instance.tasks.add(task);
  if (instance.lost) state.ring.add(instance);
}

/**
 * Follows the end of a session; the sessions have folded the entry before (N2, N3). A loss is noted
 * whatever the setting says, so that all folds note the same.
 */
export function followSessionEnd(state: TaskState, entry: DomainEntry): void {
  const ended = endInstance(state.families.sessions, state.tenants, entry);
  if (ended === undefined) return;
  const { instance } = ended;
  const { envelope, at } = ended.entry;
  instance.isOver = true;
  if (!isLoss(envelope)) return;
  instance.lost = { by: envelope.id, at };
  if (instance.tasks.head) state.ring.add(instance);
}

/** What lost instances had may be owed under the settings of now, though it was not before. */
export function wakeLost(state: TaskState): void {
  for (const { tasks } of state.tenants.values()) {
    for (const { instance } of tasks.values()) {
      if (instance?.lost && instance.tasks.head) state.ring.add(instance);
    }
  }
}

function isLoss(envelope: Envelope): boolean {
  const error = payloadObject(envelope)?.error;
  const isObject = typeof error === "object" && error !== null && !Array.isArray(error);
  return envelope.type === "session.error" && isObject && error.code === "session_timeout";
}
