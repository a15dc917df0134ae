export { createTaskDecider } from "./decider.ts";
export { describeState } from "./describe.ts";
export { history, TREE_LIMIT, type TreeView, task, tree } from "./reads.ts";
export { governanceRefusal } from "./rules/governance.ts";
export { isAllowed, isTerminal, type TaskStateName } from "./rules/transitions.ts";
export { DEFAULT_TASK_SETTINGS, type TaskSettings } from "./settings.ts";
export type { TaskState } from "./state.ts";
export { why } from "./why.ts";
