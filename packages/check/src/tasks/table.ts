/** The task table (spec 5.4): states by name, and which event may follow which. */
export type TaskState =
  | "submitted"
  | "accepted"
  | "started"
  | "blocked"
  | "progress"
  | "output"
  | "completed"
  | "failed"
  | "cancelled"
  | "timed_out";

/** What an event `task.<name>` leads to is the state of that name. */
const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "timed_out"]);

const ENDS_EARLY = ["failed", "cancelled", "timed_out"] as const;
const RUNNING = ["progress", "output", "blocked", "completed", ...ENDS_EARLY] as const;

const NEXT: Record<TaskState, readonly TaskState[]> = {
  // One `task.started` may move a submitted task through ACCEPTED.
  submitted: ["accepted", "started", ...ENDS_EARLY],
  accepted: ["started", ...ENDS_EARLY],
  started: RUNNING,
  blocked: ["started", "progress", ...ENDS_EARLY],
  progress: RUNNING,
  output: RUNNING,
  completed: [],
  failed: [],
  cancelled: [],
  timed_out: [],
};

export function isTaskState(name: string): name is TaskState {
  return Object.hasOwn(NEXT, name);
}

export const isTerminal = (state: TaskState): boolean => TERMINAL.has(state);

export const mayFollow = (from: TaskState, to: TaskState): boolean => NEXT[from].includes(to);
