/** What an offer holds while it stands: a timer and tokens; both go with it. */
import type { Task, TaskState } from "../state.ts";
import { dropTimer } from "../timers.ts";
import { rememberToken } from "../tokens/memory.ts";
import type { Delegation } from "./state.ts";

/** Parties that were replaced and are still told from strangers. */
const FORMER_MAX = 16;

/** The offer ends by itself at its deadline. */
export function arm(state: TaskState, delegation: Delegation): void {
  const { deadline: due, opening } = delegation;
  if (due === undefined || delegation.timer) return;
  delegation.timer = {
    kind: "delegation",
    due,
    order: opening.seq,
    delegation,
    index: -1,
    heldBy: undefined,
  };
  state.timers.add(delegation.timer);
}

export function disarm(state: TaskState, delegation: Delegation): void {
  if (delegation.timer) dropTimer(state, delegation.timer);
  delegation.timer = undefined;
}

/** Parties that give way to others, with every token between them (spec 7). */
export function retire(delegation: Delegation, seq: number, task: Task): void {
  const { delegatedBy, delegatedTo } = delegation;
  delegation.former = [...delegation.former, { delegatedBy, delegatedTo }].slice(-FORMER_MAX);
  voidTokens(delegation, task, seq);
}

/** Tokens that were issued and not used are worth nothing from now on. */
export function voidTokens(delegation: Delegation, { tenant }: Task, seq: number): void {
  for (const token of delegation.issued) rememberToken(tenant.delegations.tokens, token, seq);
  delegation.issued = [];
}

/** With a task end its offer and its tokens. */
export function voidDelegation(state: TaskState, task: Task, seq: number): void {
  const delegation = task.tenant.delegations.byTask.get(task.id);
  if (delegation?.task !== task) return;
  disarm(state, delegation);
  voidTokens(delegation, task, seq);
}
