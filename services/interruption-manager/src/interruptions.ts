/**
 * The life of an interruption in the state (spec 5.7). Called by folds alone.
 *
 * I1 The grace runs from the entry of the request until the checkpoint is saved, and once.
 * I2 A stronger request takes the place of a weaker one; what answered the weaker one says nothing to it.
 * I3 With the end of its task an interruption is over; its own closing entry is owed.
 */
import type { Envelope, Instant } from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import { endingIdOf } from "./derived.ts";
import { leave } from "./resumes.ts";
import { textIn } from "./rules/payload.ts";
import { dueAfter } from "./rules/policy.ts";
import { LAST_INSTANT, PAST_MAX, REASON_LENGTH_MAX } from "./settings.ts";
import {
  type Closing,
  type Interruption,
  keyOf,
  type ManagerState,
  type Policy,
  type TaskRecord,
  type Tree,
} from "./state.ts";
import { nameIn } from "./tasks/book.ts";
import { place } from "./tasks/instances.ts";

/** What a request says. */
export interface Opening {
  envelope: Envelope;
  at: Instant;
  policy: Policy;
  graceMs: number | undefined;
  isExpiry?: boolean;
  treeOf?: string | undefined;
  tree?: Tree | undefined;
}

/** The request is in force; a weaker one gives way (I2). */
export function openInterruption(state: ManagerState, task: TaskRecord, opening: Opening): void {
  const { envelope, at, policy, graceMs, isExpiry = false } = opening;
  const { tenant } = task;
  const before = task.open;
  const tree = before && releaseTree(before);
  if (before) {
    const { id, type } = envelope;
    close(state, before, { id, type, by: envelope.source, at, checkpoint: undefined });
  }
  const reason = textIn(envelope, "reason");
  state.count += 1;
  const interruption: Interruption = {
    id: envelope.id,
    task,
    policy,
    requestedBy: nameIn(tenant, envelope.source),
    at,
    reason: reason === undefined ? undefined : boundedText(reason, REASON_LENGTH_MAX),
    graceMs,
    isExpiry,
    treeOf: opening.treeOf ?? (isExpiry ? before?.treeOf : undefined),
    tree: opening.tree ?? tree,
    state: "requested",
    acknowledged: undefined,
    saved: undefined,
    resume: undefined,
    closed: undefined,
    due: graceMs === undefined ? LAST_INSTANT : dueAfter(at, graceMs),
    order: state.count,
    index: -1,
  };
  task.open = interruption;
  // Where the id belongs to another task by now, this one is on its way out.
  if (tenant.tasks.get(task.id) === task) tenant.open.set(task.id, interruption);
  place(state, task);
  if (task.ended) oweEnding(state, interruption);
  else if (graceMs !== undefined) state.graces.add(interruption);
}

/** I3. */
export function oweEnding(state: ManagerState, interruption: Interruption): void {
  state.graces.remove(interruption);
  state.endings.set(keyOf(interruption.task.tenant.name, endingIdOf(interruption)), interruption);
}

/** It is over, and told from the next one for a while. */
export function close(state: ManagerState, interruption: Interruption, closing: Closing): void {
  const { task } = interruption;
  const { tenant } = task;
  state.graces.remove(interruption);
  interruption.closed = closing;
  leave(state, interruption);
  task.open = undefined;
  if (tenant.open.get(task.id) === interruption) tenant.open.delete(task.id);
  if (task.ended) state.endings.delete(keyOf(tenant.name, endingIdOf(interruption)));
  task.past = [...(task.past ?? []), interruption].slice(-PAST_MAX);
  state.over.push({ kind: "interruption", at: closing.at, tenant, interruption });
  place(state, task);
}

/** Whom an interruption held that is over; it holds nobody any more. */
export function releaseTree(interruption: Interruption): Tree | undefined {
  const { tree } = interruption;
  interruption.tree = undefined;
  return tree;
}
