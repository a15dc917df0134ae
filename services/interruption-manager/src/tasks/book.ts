/** The tasks of a tenant as this service sees them: their tree and how they end. Called by folds alone. */
import type { Envelope, EventEntry } from "@harmovela/envelope";
import { parentIdOf } from "../rules/payload.ts";
import type { ManagerState, TaskEnd, TaskRecord, TenantState } from "../state.ts";

/** Names that are kept for certain; the older half goes when there are twice as many. */
const NAMES_MAX = 10_000;

/** The tenant's one string object for an agent: a million tasks share few names. */
export function nameIn({ names }: TenantState, name: string): string {
  const recent = names.recent.get(name);
  if (recent !== undefined) return recent;
  const known = names.before.get(name) ?? name;
  if (names.recent.size >= NAMES_MAX) {
    names.before = names.recent;
    names.recent = new Map();
  }
  names.recent.set(known, known);
  return known;
}

function createTask(tenant: TenantState, id: string): TaskRecord {
  const task: TaskRecord = {
    id,
    tenant,
    isExternal: false,
    isSubmitted: false,
    parent: undefined,
    submitter: undefined,
    target: undefined,
    owner: undefined,
    namesTenant: false,
    state: "submitted",
    ended: undefined,
    offer: undefined,
    instance: undefined,
    leftBy: undefined,
    ringNext: undefined,
    ringPrev: undefined,
    childCount: 0,
    liveCount: 0,
    firstLive: undefined,
    lastLive: undefined,
    prevLive: undefined,
    nextLive: undefined,
    open: undefined,
    past: undefined,
    checkpoints: undefined,
    plan: undefined,
    asked: undefined,
  };
  tenant.tasks.set(id, task);
  return task;
}

/** A task that nobody has submitted here (section 11, C40). */
export function addExternal(tenant: TenantState, id: string, namesTenant: boolean): TaskRecord {
  const task = createTask(tenant, id);
  task.isExternal = true;
  task.namesTenant = namesTenant;
  return task;
}

/**
 * The live task that a submission or an offer makes; one that has ended makes room, and one that was
 * external is so no more. A parent of which nothing is known is none.
 */
export function addTask(
  tenant: TenantState,
  id: string,
  { envelope }: EventEntry,
  by: { submitter: string; target: string | undefined },
): TaskRecord {
  const known = tenant.tasks.get(id);
  const task = known?.isExternal ? known : createTask(tenant, id);
  task.isExternal = false;
  task.submitter = nameIn(tenant, by.submitter);
  task.target = by.target === undefined ? undefined : nameIn(tenant, by.target);
  task.namesTenant = envelope.tenant_id !== undefined;
  const parent = parentOf(tenant, envelope);
  if (parent !== undefined && parent !== task) link(parent, task);
  return task;
}

function parentOf(tenant: TenantState, envelope: Envelope): TaskRecord | undefined {
  const id = parentIdOf(envelope);
  const parent = id === undefined ? undefined : tenant.tasks.get(id);
  return parent?.ended ? undefined : parent;
}

/** Puts a live task last among its parent's children. */
function link(parent: TaskRecord, child: TaskRecord): void {
  child.parent = parent;
  parent.childCount += 1;
  parent.liveCount += 1;
  child.prevLive = parent.lastLive;
  if (parent.lastLive) parent.lastLive.nextLive = child;
  else parent.firstLive = child;
  parent.lastLive = child;
}

function unlink(child: TaskRecord): void {
  const { parent, prevLive, nextLive } = child;
  if (parent === undefined) return;
  parent.liveCount -= 1;
  if (prevLive) prevLive.nextLive = nextLive;
  else parent.firstLive = nextLive;
  if (nextLive) nextLive.prevLive = prevLive;
  else parent.lastLive = prevLive;
  child.prevLive = undefined;
  child.nextLive = undefined;
}

/** The task is over, whatever has become of it. */
export function endTask(state: ManagerState, task: TaskRecord, end: TaskEnd): void {
  unlink(task);
  task.ended = end;
  state.over.push({ kind: "task", at: end.at, tenant: task.tenant, task });
}

/** An offer that nobody took leaves nothing behind: its id is free. */
export function removeTask(task: TaskRecord, end: TaskEnd): void {
  unlink(task);
  if (task.parent) task.parent.childCount -= 1;
  task.ended = end;
  const { tasks } = task.tenant;
  if (tasks.get(task.id) === task) tasks.delete(task.id);
}

/** Live tasks below a root, children before their parents; costs what it finds. */
export function liveBelow(root: TaskRecord): TaskRecord[] {
  const found: TaskRecord[] = [];
  let at = deepest(root);
  while (at !== root) {
    found.push(at);
    at = at.nextLive === undefined ? (at.parent ?? root) : deepest(at.nextLive);
  }
  return found;
}

function deepest(from: TaskRecord): TaskRecord {
  let at = from;
  while (at.firstLive) at = at.firstLive;
  return at;
}
