/**
 * Walks over what rests on something that fell (spec 6.1): iterative, one mark after the other.
 *
 * W1 A walk looks below each node once, so cycles end and diamonds are marked once.
 * W2 What is marked, or is about to be, is passed over: so is whatever rests on it.
 * W3 What is over is not marked, but looked below: what was concluded from it may live.
 */
import { type BegunEntry, Fifo } from "@harmovela/envelope";
import type { BeliefState, Claim, Mark, Node, TenantState, Walk } from "./state.ts";
import { isLive } from "./state.ts";

/** A walk begins below these nodes. `claim`: the one that its last event marks. */
export function openWalk(
  state: BeliefState,
  tenant: TenantState,
  { plan, at }: Pick<BegunEntry, "plan" | "at">,
  from: { roots: readonly Node[]; retraction: string; key: string; claim?: Claim },
): void {
  const walk: Walk = {
    kind: "walk",
    id: plan.id,
    tenant,
    envelope: plan.envelope,
    claim: from.claim,
    retraction: from.retraction,
    key: from.key,
    at,
    queue: new Fifo(),
    seen: new Set(),
    current: undefined,
    below: [],
    place: 0,
    ringNext: undefined,
    ringPrev: undefined,
  };
  for (const root of from.roots) reach(walk, root);
  tenant.walks.set(walk.id, walk);
  state.ring.add(walk);
}

export function closeWalk(state: BeliefState, walk: Walk): void {
  state.ring.remove(walk);
  walk.tenant.walks.delete(walk.id);
}

/** W1. */
function reach(walk: Walk, node: Node): void {
  if (walk.seen.has(node)) return;
  walk.seen.add(node);
  walk.queue.push(node);
}

/** The next claim to be marked; passing over what need not be is bookkeeping. */
export function nextToMark(walk: Walk): Claim | undefined {
  for (;;) {
    for (; walk.place < walk.below.length; walk.place += 1) {
      const claim = walk.below[walk.place];
      if (claim === undefined || walk.current?.dependents?.has(claim) !== true) continue;
      if (claim.mark !== undefined || claim.due !== undefined) continue;
      if (isMarkable(claim, walk.current)) return claim;
      reach(walk, claim);
    }
    const next = walk.queue.shift();
    if (next === undefined) return undefined;
    walk.current = next;
    walk.below = [...(next.dependents ?? [])];
    walk.place = 0;
  }
}

/** Whether an invalidation has to mark anything below these nodes, or may have to (W3). */
export function hasToMark(nodes: readonly Node[]): boolean {
  return nodes.some((node) => {
    for (const claim of node.dependents ?? []) {
      if (claim.mark === undefined && claim.due === undefined) return true;
    }
    return false;
  });
}

/** W3. A claim whose end rests on what replaced it is in doubt again when that falls. */
export function isMarkable(claim: Claim, below: Node): boolean {
  return isLive(claim) || claim.replacedBy === below;
}

export function markClaim(walk: Walk | undefined, claim: Claim, mark: Mark): void {
  claim.mark ??= mark;
  if (walk !== undefined) reach(walk, claim);
}
