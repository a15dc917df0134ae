/** The task tree. Every list is linked through the tasks, so linking and unlinking are O(1). */
import type { Task } from "./state.ts";

/** Puts a new live task last among its parent's children. */
export function linkChild(parent: Task, child: Task): void {
  parent.childCount += 1;
  child.prevSibling = parent.lastChild;
  if (parent.lastChild) parent.lastChild.nextSibling = child;
  else parent.firstChild = child;
  parent.lastChild = child;

  parent.liveCount += 1;
  child.prevLive = parent.lastLive;
  if (parent.lastLive) parent.lastLive.nextLive = child;
  else parent.firstLive = child;
  parent.lastLive = child;
}

/** Takes a task out of its parent's live children. */
export function unlinkLive(child: Task): void {
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

/** Takes a task that is no longer live out of the list of its parent's children. */
export function unlinkChild(child: Task): void {
  const { parent, prevSibling, nextSibling } = child;
  if (parent === undefined) return;
  if (prevSibling) prevSibling.nextSibling = nextSibling;
  else parent.firstChild = nextSibling;
  if (nextSibling) nextSibling.prevSibling = prevSibling;
  else parent.lastChild = prevSibling;
  child.prevSibling = undefined;
  child.nextSibling = undefined;
}

/** The live task after this one, parents first; undefined after the last one under `root`. */
export function nextInPreorder(task: Task, root: Task): Task | undefined {
  return task.firstLive ?? nextOutside(task, root);
}

/** The live task after this one's whole subtree. */
export function nextOutside(task: Task, root: Task): Task | undefined {
  let at: Task | undefined = task;
  while (at && at !== root) {
    if (at.nextLive) return at.nextLive;
    at = at.parent;
  }
  return undefined;
}

export function isWithin(task: Task, root: Task): boolean {
  for (let at: Task | undefined = task; at && at.depth >= root.depth; at = at.parent) {
    if (at === root) return true;
  }
  return false;
}
