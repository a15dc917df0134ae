/** The lineage of an event as lines: what it follows from below it, who vouches for it beside that. */
import type { JsonObject } from "@harmovela/failure";
import { type TreeNode, treeLines } from "./tree-lines.ts";

/** What the read `graph` answers. */
export interface LineageGraph {
  nodes: readonly JsonObject[];
  edges: readonly JsonObject[];
  isCut: boolean;
}

export function graphIn(result: JsonObject): LineageGraph {
  return {
    nodes: result.nodes as JsonObject[],
    edges: result.edges as JsonObject[],
    isCut: result.is_cut === true,
  };
}

/** Each event once, below the first one that rests on it. */
export function provenanceLines({ nodes, edges, isCut }: LineageGraph): string[] {
  const parents = new Map<string, string>();
  const others = new Map<string, number>();
  const [root] = nodes;
  for (const { from, to } of edges) {
    const id = String(to);
    if (id === root?.id || parents.has(id)) others.set(id, (others.get(id) ?? 0) + 1);
    else parents.set(id, String(from));
  }
  const tree = nodes.flatMap((node): TreeNode[] => {
    const id = String(node.id);
    return [eventNode(node, parents.get(id), others.get(id) ?? 0), ...attestationNodes(node)];
  });
  const lines = treeLines(tree);
  if (isCut) lines.push("… and what is farther back: --depth shows more");
  return lines;
}

function eventNode(node: JsonObject, parent: string | undefined, others: number): TreeNode {
  const id = String(node.id);
  if (node.is_known !== true) {
    return { id, parent, state: "unknown", who: undefined, note: "no log has shown it" };
  }
  const notes = [String(node.type)];
  const { source_trust: trust, signed_by: signer, attestation_count: count } = node;
  if (typeof trust === "string") notes.push(trust);
  if (typeof signer === "string") notes.push(`signed with ${signer}`);
  if (Number(count) > 0) notes.push(`attested by ${count}`);
  if (node.withdrawn !== undefined) notes.push(`withdrawn by ${(node.withdrawn as JsonObject).by}`);
  if (node.is_lost === true) notes.push("no longer in its log");
  if (node.is_ambiguous === true) notes.push("different events under this id");
  if (others > 0) notes.push(`and evidence of ${others} more here`);
  return { id, parent, state: stateOf(node), who: String(node.source), note: notes.join(", ") };
}

/** What its chain is worth; an origin has none. */
function stateOf({ chain }: JsonObject): string {
  const { result, first_bad: bad } = (chain ?? {}) as JsonObject;
  if (result === "empty") return "origin";
  return bad === undefined ? String(result) : `${result} at ${(bad as JsonObject).id}`;
}

function attestationNodes(node: JsonObject): TreeNode[] {
  return ((node.attestations ?? []) as JsonObject[]).map((attestation) => {
    const {
      event_id: id,
      source,
      method,
      result,
      claimed_attestor: claimed,
      revoked,
    } = attestation;
    const notes = [String(method)];
    if (result !== undefined) notes.push(String(result));
    if (claimed !== undefined) notes.push(`says it is ${claimed}`);
    if (revoked !== undefined) {
      const { by, reason } = revoked as JsonObject;
      notes.push(`revoked by ${by}: ${reason}`);
    }
    const state =
      revoked !== undefined ? "revoked" : attestation.counts === true ? "vouches" : "own";
    return {
      id: String(id),
      parent: String(node.id),
      state,
      who: String(source),
      note: notes.join(", "),
    };
  });
}
