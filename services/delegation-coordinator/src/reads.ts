/** Answers about tasks. Pure functions of the state; each is bounded, whatever the tree holds. */
import type { JsonObject } from "@harmovela/failure";
import { delegationOf } from "./delegation/state.ts";
import { interruptionView } from "./interruptions/reads.ts";
import { closedBy } from "./rules/closing.ts";
import { winnerOf } from "./rules/refusals.ts";
import { findTask, type Task, type TaskState } from "./state.ts";

/** Nodes that one answer lists. */
export const TREE_LIMIT = 1000;
/** Nodes beyond the listed ones that are still counted. */
const COUNTED_MAX = 100_000;

/** One task as it stands; undefined when the tenant has none of that id. */
export function task(state: TaskState, tenant: string, id: string): JsonObject | undefined {
  const found = findTask(state, tenant, id);
  return found && viewOf(found);
}

function viewOf(found: Task): JsonObject {
  const plan = closedBy(found);
  const view: JsonObject = {
    task_id: found.id,
    state: found.state,
    depth: found.depth,
    submitter: found.submitter,
    submitted_seq: found.submittedSeq,
    last_seq: found.lastSeq,
    last_activity_ms: found.lastAt,
    children: found.childCount,
    live_children: found.liveCount,
    ...winnerOf(found),
    ...interruptionView(found),
  };
  if (found.forgottenCount > 0) view.forgotten_children = found.forgottenCount;
  if (found.parent) view.parent_task_id = found.parent.id;
  if (found.target !== undefined) view.target = found.target;
  const owner = delegationOf(found)?.owner ?? found.owner;
  if (owner !== undefined) view.owner = owner;
  if (found.owner !== undefined && found.owner !== owner) view.worker = found.owner;
  if (found.instance && !found.instance.isOver) view.session_id = found.instance.session;
  if (found.isFree) view.is_free = true;
  if (found.deadline) view.deadline_at_ms = found.deadline.due;
  if (found.cancelRequested !== undefined) view.cancel_requested_by = found.cancelRequested;
  if (found.ended?.reason !== undefined) view.reason = found.ended.reason;
  if (plan && !found.ended) view.settling_by = plan.id;
  return view;
}

export interface TreeView {
  /** Parents before their children, children in the order of their submission. */
  nodes: JsonObject[];
  /** Nodes that were left out; at least so many when `truncatedMore`. */
  truncated: number;
  truncatedMore: boolean;
}

/** A task and what is below it, ended tasks included. */
export function tree(
  state: TaskState,
  tenant: string,
  id: string,
  options: { limit?: number } = {},
): TreeView | undefined {
  const root = findTask(state, tenant, id);
  if (root === undefined) return undefined;
  const limit = options.limit ?? TREE_LIMIT;
  const nodes: JsonObject[] = [];
  let truncated = 0;
  for (let at: Task | undefined = root; at; at = nextOfAll(at, root)) {
    if (nodes.length < limit) nodes.push(viewOf(at));
    else if (truncated < COUNTED_MAX) truncated += 1;
    else return { nodes, truncated, truncatedMore: true };
  }
  return { nodes, truncated, truncatedMore: false };
}

function nextOfAll(from: Task, root: Task): Task | undefined {
  if (from.firstChild) return from.firstChild;
  let at: Task | undefined = from;
  while (at && at !== root) {
    if (at.nextSibling) return at.nextSibling;
    at = at.parent;
  }
  return undefined;
}

/** Log positions that concern a task: the last ones, and how many there were in all. */
export function history(
  state: TaskState,
  tenant: string,
  id: string,
): { sequences: number[]; total: number } | undefined {
  const found = findTask(state, tenant, id);
  return found && { sequences: [...found.entries], total: found.entryCount };
}
