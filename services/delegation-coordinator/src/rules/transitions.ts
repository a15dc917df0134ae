/** The task table of spec 5.4. A state is named like the event that leads to it. */
export type TerminalName = "completed" | "failed" | "cancelled" | "timed_out";
export type TaskStateName =
  | "submitted"
  | "accepted"
  | "started"
  | "blocked"
  | "progress"
  | "output"
  | TerminalName;
export type TerminalType = `task.${TerminalName}`;

const ENDS_ABNORMALLY = ["failed", "cancelled", "timed_out"] as const;
const WORKING = ["progress", "output", "blocked", "completed", ...ENDS_ABNORMALLY] as const;
const NOTHING: ReadonlySet<TaskStateName> = new Set();

const NEXT: Readonly<Record<TaskStateName, ReadonlySet<TaskStateName>>> = {
  // `started` passes through accepted within its one entry.
  submitted: new Set<TaskStateName>(["accepted", "started", ...ENDS_ABNORMALLY]),
  accepted: new Set<TaskStateName>(["started", ...ENDS_ABNORMALLY]),
  started: new Set<TaskStateName>(WORKING),
  blocked: new Set<TaskStateName>(["started", "progress", ...ENDS_ABNORMALLY]),
  progress: new Set<TaskStateName>(WORKING),
  output: new Set<TaskStateName>(WORKING),
  completed: NOTHING,
  failed: NOTHING,
  cancelled: NOTHING,
  timed_out: NOTHING,
};

const STATES: ReadonlyMap<string, TaskStateName> = new Map(
  (Object.keys(NEXT) as TaskStateName[]).map((name) => [`task.${name}`, name]),
);

/** The state that an event type leads to; none for `task.cancel.requested` and other families. */
export function stateAfter(type: string): TaskStateName | undefined {
  return STATES.get(type);
}

export function isTaskStateName(name: string): name is TaskStateName {
  return Object.hasOwn(NEXT, name);
}

export function isAllowed(from: TaskStateName, to: TaskStateName): boolean {
  return NEXT[from].has(to);
}

export function isTerminal(state: TaskStateName): state is TerminalName {
  return NEXT[state] === NOTHING;
}
