/**
 * Answers about delegations, owners and lists of tasks. Pure functions of the state; each answer is
 * bounded, and a list goes on behind the last task it named.
 */
import type { Instant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { isTerminal, type TaskStateName } from "../rules/transitions.ts";
import { findTask, type Task, type TaskState } from "../state.ts";
import { type Delegation, findDelegation, isPending, ownerOf } from "./state.ts";

/** Tasks on one page. */
export const PAGE_LIMIT = 500;
/** Tasks that are looked at for one page: then the page ends, and the next one goes on. */
const LOOKED_AT_MAX = 50_000;

/** The delegation of a task as it stands, and whom a status query must be asked (spec 5.6). */
export function delegation(
  state: TaskState,
  tenant: string,
  taskId: string,
): JsonObject | undefined {
  const found = findDelegation(state, tenant, taskId);
  return found && viewOf(found);
}

function viewOf(found: Delegation): JsonObject {
  const view: JsonObject = {
    task_id: found.taskId,
    state: found.state,
    delegated_by: found.delegatedBy,
    delegated_to: found.delegatedTo ?? null,
    owner: found.task === undefined ? found.owner : ownerOf(found.task),
    route: routeOf(found),
    attempt: found.attempt,
    opened_by: found.opening.id,
    last_seq: found.lastSeq,
    last_activity_ms: found.lastAt,
  };
  if (found.parentId !== undefined) view.parent_task_id = found.parentId;
  if (found.key !== undefined) view.key = found.key;
  if (found.deadline !== undefined) view.deadline_at_ms = found.deadline;
  if (found.reason !== undefined) view.reason = found.reason;
  if (found.retryAfter !== undefined) view.retry_after_ms = found.retryAfter;
  if (found.handoff) view.handed_off_by = found.handoff.id;
  return view;
}

/** An offer that was refused, or that nobody took yet, leaves the questions with the delegator. */
function routeOf({ state, delegatedBy, delegatedTo }: Delegation): string {
  return state === "rejected" ? delegatedBy : (delegatedTo ?? delegatedBy);
}

/** Whose a task is, who works on it, and whom to ask about it. */
export function owner(state: TaskState, tenant: string, taskId: string): JsonObject | undefined {
  const task = findTask(state, tenant, taskId);
  if (task === undefined) return undefined;
  const found = findDelegation(state, tenant, taskId);
  const isLive = found?.task === task;
  return {
    task_id: taskId,
    owner: ownerOf(task),
    worker: task.owner ?? null,
    ...(task.instance && !task.instance.isOver ? { session_id: task.instance.session } : {}),
    route: isLive ? routeOf(found) : (task.owner ?? task.target ?? task.submitter),
    is_offered: isLive && isPending(found),
    ended: task.ended !== undefined,
  };
}

export interface Page {
  tasks: JsonObject[];
  /** Behind which task the next page begins; absent on the last page. */
  after?: string;
}

interface Paging {
  limit: number;
  after?: string | undefined;
}

/** The children of a task, ended ones included, in the order in which they came; undefined when one of the two is not there. */
export function children(
  state: TaskState,
  tenant: string,
  taskId: string,
  { limit, after }: Paging,
): Page | undefined {
  const parent = findTask(state, tenant, taskId);
  if (parent === undefined) return undefined;
  const last = after === undefined ? undefined : findTask(state, tenant, after);
  if (after !== undefined && last?.parent !== parent) return undefined;
  const found: Task[] = [];
  let next = last ? last.nextSibling : parent.firstChild;
  for (; next && found.length < limit; next = next.nextSibling) found.push(next);
  return toPage(found, next !== undefined);
}

export interface ListFilter {
  state?: TaskStateName | "live" | undefined;
  /** Owner, worker, or for whom it is. */
  agent?: string | undefined;
  /** No word of its agents for so long. */
  silentMs?: number | undefined;
}

/**
 * Tasks of a tenant, in the order in which they came; an empty page with `after` goes on. Undefined
 * when the task to go on behind is not there.
 */
export function list(
  state: TaskState,
  tenant: string,
  filter: ListFilter,
  { limit, after }: Paging,
  now: Instant,
): Page | undefined {
  const tasks = state.tenants.get(tenant)?.tasks;
  const found: Task[] = [];
  if (after !== undefined && !tasks?.has(after)) return undefined;
  if (tasks === undefined) return { tasks: [] };
  let isBehind = after === undefined;
  let looked = 0;
  let last: Task | undefined;
  for (const task of tasks.values()) {
    if (!isBehind) {
      isBehind = task.id === after;
      continue;
    }
    if (found.length >= limit || looked >= LOOKED_AT_MAX) return toPage(found, true, last);
    looked += 1;
    last = task;
    if (isListed(task, filter, now)) found.push(task);
  }
  return toPage(found, false);
}

function isListed(task: Task, { state, agent, silentMs }: ListFilter, now: Instant): boolean {
  if (state === "live" ? isTerminal(task.state) : state !== undefined && task.state !== state) {
    return false;
  }
  if (agent !== undefined && ![ownerOf(task), task.owner, task.target].includes(agent)) {
    return false;
  }
  return silentMs === undefined || (!task.ended && now - task.lastAt >= silentMs);
}

function toPage(found: Task[], hasMore: boolean, last: Task | undefined = found.at(-1)): Page {
  const tasks = found.map((task) => ({
    task_id: task.id,
    state: task.state,
    owner: ownerOf(task),
    ...(task.parent ? { parent_task_id: task.parent.id } : {}),
    ...(task.target === undefined ? {} : { target: task.target }),
    ...(task.isFree ? { is_free: true } : {}),
    live_children: task.liveCount,
    last_activity_ms: task.lastAt,
    last_seq: task.lastSeq,
  }));
  return hasMore && last ? { tasks, after: last.id } : { tasks };
}
