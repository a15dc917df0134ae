/** Who rests on what (spec 6.1). An event that nobody has asserted here stands for itself until somebody does. */

import { dropNode } from "./forgetting.ts";
import type { Claim, Evidence, Node, TenantState } from "./state.ts";

export function addDependent(node: Node, claim: Claim): void {
  if (node.kind === "evidence") node.dependents.add(claim);
  else {
    node.dependents ??= new Set();
    node.dependents.add(claim);
  }
}

/** Replaces what a claim rests on; what nobody rests on any more may be forgotten. */
export function linkTo(tenant: TenantState, claim: Claim, ids: readonly string[]): void {
  const nodes = new Set<Node>();
  for (const id of ids) {
    const node = tenant.events.get(id) ?? evidenceFor(tenant, id);
    if (!isOfSameKind(node, claim)) nodes.add(node);
  }
  const before = claim.restsOn;
  claim.restsOn = [...nodes];
  for (const node of nodes) addDependent(node, claim);
  unlink(tenant, claim, before, nodes);
}

/** What the same source said about the same subject before is no evidence for what it says now. */
function isOfSameKind(node: Node, claim: Claim): boolean {
  return node.kind === "claim" && node.subject === claim.subject && node.source === claim.source;
}

export function unlink(
  tenant: TenantState,
  claim: Claim,
  from: readonly Node[],
  except?: ReadonlySet<Node>,
): void {
  for (const node of from) {
    if (except?.has(node)) continue;
    node.dependents?.delete(claim);
    dropNode(tenant, node);
  }
}

export function evidenceFor(tenant: TenantState, id: string): Evidence {
  const evidence = createEvidence(id);
  tenant.events.set(id, evidence);
  return evidence;
}

export function createEvidence(id: string): Evidence {
  return {
    kind: "evidence",
    id,
    dependents: new Set(),
    withdrawn: undefined,
    takenBack: new Map(),
  };
}

/** The event has come: what rested on its id rests on its claim. */
export function takeOver(evidence: Evidence, claim: Claim): void {
  for (const dependent of evidence.dependents) {
    const nodes = new Set<Node>();
    for (const node of dependent.restsOn) {
      const now = node === evidence ? claim : node;
      if (!isOfSameKind(now, dependent)) nodes.add(now);
    }
    dependent.restsOn = [...nodes];
    if (dependent.replacedBy === evidence) dependent.replacedBy = claim;
    if (nodes.has(claim)) addDependent(claim, dependent);
  }
}

/** What it rests on that no longer stands: retracted, or itself to be evaluated again. */
export function fallenBelow(
  claim: Claim,
): { retraction: string; key: string; dependsOn: string } | undefined {
  for (const node of claim.restsOn) {
    const dependsOn = node.kind === "claim" ? node.event : node.id;
    const key = node.kind === "claim" ? node.subject.key : node.id;
    const { withdrawn } = node;
    if (withdrawn?.isRetraction) return { retraction: withdrawn.id, key, dependsOn };
    const fallen = node.kind === "claim" ? (node.mark ?? node.due?.because) : undefined;
    if (fallen !== undefined) {
      return { retraction: fallen.retraction, key: fallen.key, dependsOn };
    }
  }
  return undefined;
}
