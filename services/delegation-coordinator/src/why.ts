/** One plain sentence about what a task waits for, or how it ended. */
import { formatInstant, type Instant } from "@harmovela/envelope";
import { interruptingOf, stoppedOf } from "./interruptions/reads.ts";
import { isStopped } from "./interruptions/state.ts";
import { closedBy } from "./rules/closing.ts";
import { type Ending, findTask, type PlanState, type Task, type TaskState } from "./state.ts";
import { nextInPreorder } from "./tree.ts";

const NAMED_MAX = 5;
const COUNTED_MAX = 10_000;

/** Undefined when the tenant has no task of that id. `now` is broker time. */
export function why(
  state: TaskState,
  tenant: string,
  id: string,
  now: Instant,
): string | undefined {
  const task = findTask(state, tenant, id);
  if (task === undefined) return undefined;
  if (task.ended) return `${task.id} ${endingOf(task, task.ended)}.`;
  const plan = closedBy(task);
  const what = plan ? settlingOf(task, plan) : (stoppedOf(task) ?? waitingOf(task, now));
  return `${task.id} (${standing(task)}) ${what}.`;
}

function standing(task: Task): string {
  const stopped = isStopped(task) ? ", stopped" : "";
  if (task.owner !== undefined) return `${task.state}, owner ${task.owner}${stopped}`;
  return task.target === undefined ? task.state : `${task.state}, for ${task.target}`;
}

function age(task: Task, now: Instant): string {
  const seconds = Math.max(0, Math.floor((now - task.lastAt) / 1000));
  return `last activity ${seconds} s ago`;
}

function waitingOf(task: Task, now: Instant): string {
  const limit = task.deadline ? `, until its deadline at ${formatInstant(task.deadline.due)}` : "";
  if (task.liveCount > 0) {
    const named: string[] = [];
    for (let child = task.firstLive; child && named.length < NAMED_MAX; child = child.nextLive) {
      named.push(`${child.id} (${standing(child)}, ${age(child, now)})`);
    }
    const more = task.liveCount > named.length ? ` and ${task.liveCount - named.length} more` : "";
    const noun = task.liveCount === 1 ? "child" : "children";
    return `waits for ${task.liveCount} live ${noun}: ${named.join(", ")}${more}${limit}`;
  }
  const asked = interruptingOf(task);
  if (task.owner !== undefined) return `waits for its owner, ${age(task, now)}${limit}${asked}`;
  const taker = task.target ?? "anybody";
  return `waits for ${taker} to accept it, ${age(task, now)}${limit}`;
}

function settlingOf(task: Task, plan: PlanState): string {
  const { root } = plan;
  const verb = plan.kind === "task.timed_out" ? "timed out" : plan.kind.slice("task.".length);
  const through = root === task ? "" : ` through ${root.id}`;
  const count = `${liveBelow(root)} tasks below ${root.id} are still live`;
  const ending =
    plan.grace && !plan.hard
      ? `asked to stop by ${plan.id} of ${plan.envelope.source}${through}, the rest forced at ${formatInstant(plan.grace.due)}`
      : `being ${verb} by ${plan.id} of ${plan.envelope.source}${through}, leaves first`;
  return `is ${ending}: ${count}`;
}

/** Live tasks below a root, counted up to a bound. */
function liveBelow(root: Task): number {
  let count = 0;
  let at = nextInPreorder(root, root);
  while (at && count < COUNTED_MAX) {
    count += 1;
    at = nextInPreorder(at, root);
  }
  return count;
}

/** Cancelled by somebody, by its parent's cancellation, failure or deadline, or by its own deadline. */
function endingOf(task: Task, ended: Ending): string {
  const at = formatInstant(ended.at);
  const because = ended.reason === undefined ? "" : `, because: ${ended.reason}`;
  const own = `by ${ended.by} (${ended.id}) at ${at}${because}`;
  if (ended.rootOutcome === undefined || ended.rootTask === task.id) {
    if (ended.type === "task.timed_out") return `was ended by its deadline: timed out ${own}`;
    const forced = ended.forced ? " by force" : "";
    return ended.type === "task.cancelled"
      ? `was cancelled${forced} ${own}`
      : `${task.state} ${own}`;
  }
  const cause = `${ended.rootTask} (${ended.correlation})`;
  const forced = ended.forced ? ", by force after the grace" : "";
  switch (ended.rootOutcome) {
    case "failed":
      return `was cancelled by the failure of its ancestor ${cause} at ${at}${forced}`;
    case "timed_out":
      return `was cancelled by the deadline of its ancestor ${cause} at ${at}${forced}`;
    default:
      return `was cancelled by the cancellation of its ancestor ${cause} at ${at}${forced}`;
  }
}
