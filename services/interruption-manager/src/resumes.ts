/**
 * A subtree that goes on after its root (issue "interruption manager"). Called by folds, but for the look
 * at the next step.
 *
 * G1 It concerns what was saved under the root's tree request when the root went on, and only for as
 *    long as that is not over.
 * G2 Parents before their children.
 */
import type { Instant } from "@harmovela/envelope";
import type { Interruption, ManagerState, TenantState, Tree, TreeResume } from "./state.ts";

/** G1. */
export function openResume(
  state: ManagerState,
  tenant: TenantState,
  { members, ids }: Tree,
  { id, at }: { id: string; at: Instant },
): void {
  const stopped: Interruption[] = [];
  for (const { open } of members) {
    if (open?.saved && open.treeOf !== undefined && ids.includes(open.treeOf)) stopped.push(open);
  }
  if (stopped.length === 0) return;
  const resume: TreeResume = {
    kind: "resume",
    id,
    tenant,
    at,
    stopped: stopped.reverse(),
    left: stopped.length,
    place: 0,
    ringNext: undefined,
    ringPrev: undefined,
  };
  for (const interruption of stopped) interruption.resume = resume;
  tenant.resumes.set(id, resume);
  state.ring.add(resume);
}

/** The next interruption that goes on (G2). */
export function nextToResume(resume: TreeResume): Interruption | undefined {
  const { stopped } = resume;
  for (; resume.place < stopped.length; resume.place += 1) {
    const next = stopped[resume.place];
    if (next && !next.closed && !next.task.ended && !next.task.asked) return next;
  }
  return undefined;
}

/** A step cannot be written: the walk goes on behind it. */
export function passOver(state: ManagerState, resume: TreeResume): void {
  const next = nextToResume(resume);
  resume.place += 1;
  if (next) leave(state, next);
}

/** It is over, or stays as it is: one less to go on. */
export function leave(state: ManagerState, interruption: Interruption): void {
  const { resume } = interruption;
  if (resume === undefined) return;
  interruption.resume = undefined;
  resume.left -= 1;
  if (resume.left === 0) closeResume(state, resume);
  else state.ring.rotate(resume);
}

function closeResume(state: ManagerState, resume: TreeResume): void {
  resume.tenant.resumes.delete(resume.id);
  state.ring.remove(resume);
}
