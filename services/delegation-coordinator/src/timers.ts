/** Timers of tasks: each stands in the heap, or sleeps under the one plan that has suspended it. */
import type { PlanState, TaskState, Timer } from "./state.ts";

/** It must not fire while the plan is under way. */
export function suspendTimer(state: TaskState, timer: Timer, plan: PlanState): void {
  dropTimer(state, timer);
  timer.heldBy = plan;
  plan.suspended.add(timer);
}

/** The plan that had suspended it is over. */
export function resumeTimer(state: TaskState, timer: Timer): void {
  timer.heldBy?.suspended.delete(timer);
  timer.heldBy = undefined;
  state.timers.add(timer);
}

/** It never fires, wherever it stands. */
export function dropTimer(state: TaskState, timer: Timer): void {
  state.timers.remove(timer);
  timer.heldBy?.suspended.delete(timer);
  timer.heldBy = undefined;
}
