/**
 * Evidence that can no longer be had (`provenance.chain.truncated`, spec section 8): whatever rests on
 * it has to be evaluated again.
 *
 * L1 Nobody is to act on what rests on it from the moment on that the loss is observed; the marks follow
 *    one by one in turns with plans, because there may be very many.
 * L2 What is over is not marked, but looked below: what was concluded from it may live. What itself is
 *    claimed still stands, though its entry is gone.
 * L3 An agent's word about its own conclusion puts that one in doubt, and nothing of others.
 */
import {
  type DomainEntry,
  deriveId,
  type Envelope,
  type EventEntry,
  Fifo,
  payloadText,
} from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import { REASON_LENGTH_MAX } from "./settings.ts";
import {
  type BeliefState,
  type Claim,
  type Evidence,
  type Fallen,
  isLive,
  type Loss,
  type Node,
  type TenantState,
} from "./state.ts";
import { isMarkable } from "./walks.ts";

/** Follows an entry of the log of `provenance`; called by `observe` alone. */
export function observeTruncation(state: BeliefState, entry: DomainEntry): void {
  if (entry.kind !== "event" || entry.envelope.type !== "provenance.chain.truncated") return;
  const { envelope } = entry;
  const tenant = state.tenants.get(entry.tenant);
  if (tenant === undefined) return;
  const missing = payloadText(envelope, "missing_from") ?? envelope.causation_id ?? "";
  const node = tenant.events.get(missing);
  const own = ownClaim(tenant, envelope);
  if (own === undefined && node?.kind === "evidence") noteLoss(state, tenant, node, entry);
  const loss = createLoss(tenant, missing, entry);
  const because = { retraction: envelope.id, key: missing };
  for (const { claim, dependsOn } of inDoubt(missing, node, own)) {
    claim.due = { id: loss.id, because: { ...because, dependsOn } };
    loss.left.push(claim);
  }
  if (loss.left.size === 0) return;
  tenant.losses.set(loss.id, loss);
  state.ring.add(loss);
}

/** L3: the claim of an agent that tells that its own evidence is lost. */
function ownClaim(tenant: TenantState, { source, causation_id: id }: Envelope): Claim | undefined {
  const node = tenant.events.get(id ?? "");
  return node?.kind === "claim" && node.source === source ? node : undefined;
}

/** For whatever comes to rest on it, it is lost as well. */
function noteLoss(
  state: BeliefState,
  tenant: TenantState,
  evidence: Evidence,
  { envelope, at }: EventEntry,
): void {
  if (evidence.withdrawn !== undefined) return;
  const { id, source: by } = envelope;
  const reason = boundedText(payloadText(envelope, "reason") ?? "", REASON_LENGTH_MAX);
  evidence.withdrawn = { id, by, at, isRetraction: true, isLoss: true, reason };
  state.over.push({ kind: "evidence", at, tenant, evidence });
}

function inDoubt(missing: string, node: Node | undefined, own: Claim | undefined) {
  if (own === undefined) return node === undefined ? [] : directlyOn(node);
  const isItself = own.event === missing || own === node;
  const isKnown = (own.mark ?? own.due) !== undefined;
  return isItself || isKnown || !isLive(own) ? [] : [{ claim: own, dependsOn: missing }];
}

function createLoss(tenant: TenantState, missing: string, { envelope, seq, at }: EventEntry): Loss {
  return {
    kind: "loss",
    // One event may be observed twice, long after each other.
    id: deriveId(tenant.name, envelope.id, `lost:${missing}:${seq}`, at),
    tenant,
    at,
    left: new Fifo(),
    ringNext: undefined,
    ringPrev: undefined,
  };
}

/** What rests on it next and is not marked or about to be (L2). */
function* directlyOn(root: Node): Generator<{ claim: Claim; dependsOn: string }> {
  const seen = new Set<Node>([root]);
  for (const node of seen) {
    for (const claim of node.dependents ?? []) {
      if ((claim.mark ?? claim.due) !== undefined) continue;
      if (isMarkable(claim, node)) yield { claim, dependsOn: idOf(node) };
      else seen.add(claim);
    }
  }
}

function idOf(node: Node): string {
  return node.kind === "claim" ? node.event : node.id;
}

/** The next claim that a loss has to mark, taken from it; undefined when no loss has this id. */
export function takeLost(
  state: BeliefState,
  name: string,
  id: string,
): { kind: "mark"; claim: Claim; because: Fallen } | undefined {
  const loss = state.tenants.get(name)?.losses.get(id);
  const claim = loss?.left.shift();
  if (loss === undefined || claim?.due === undefined) return undefined;
  state.ring.rotate(loss);
  if (loss.left.size === 0) {
    state.ring.remove(loss);
    loss.tenant.losses.delete(id);
  }
  const { because } = claim.due;
  claim.due = undefined;
  return { kind: "mark", claim, because };
}
