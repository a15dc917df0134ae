/** A lineage as nodes and edges: what an event follows from, and who vouches for what of it. */
import { formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { inspectChain } from "./rules/chain.ts";
import { type Attestation, type AttesterState, isLost, type Known, vouchersOf } from "./state.ts";

/** Attestations that one node lists; the count beside them is exact. */
const LISTED_MAX = 100;

export interface Graph {
  nodes: JsonObject[];
  edges: JsonObject[];
  /** There is more than was asked for. */
  is_cut: boolean;
}

/** Breadth first, so that what is near comes first; each event once, so cycles end. */
export function graphOf(
  state: AttesterState,
  root: Known,
  { depth, limit }: { depth: number; limit: number },
): Graph {
  const { tenant } = root;
  const graph: Graph = { nodes: [], edges: [], is_cut: false };
  const seen = new Set([root.id]);
  let level = [root.id];
  for (let at = 0; level.length > 0; at += 1) {
    const next: string[] = [];
    for (const id of level) {
      const event = tenant.events.get(id);
      graph.nodes.push(event === undefined ? { id, is_known: false } : nodeOf(state, event));
      for (const [index, link] of (event?.links ?? []).entries()) {
        const isNew = !seen.has(link.id);
        if (isNew && (at >= depth || seen.size >= limit)) {
          graph.is_cut = true;
          continue;
        }
        graph.edges.push({ from: id, to: link.id, index });
        if (!isNew) continue;
        seen.add(link.id);
        next.push(link.id);
      }
    }
    level = next;
  }
  return graph;
}

function nodeOf(state: AttesterState, event: Known): JsonObject {
  const { attestations = [], tenant } = event;
  const { result, links, checked, firstBad } = inspectChain(state, tenant, event);
  const node: JsonObject = {
    ...viewOf(state, event),
    chain: {
      result,
      links,
      checked,
      ...(firstBad === undefined ? {} : { first_bad: { ...firstBad } }),
    },
    attestation_count: vouchersOf(event).size,
  };
  if (attestations.length > 0) {
    node.attestations = attestations.slice(0, LISTED_MAX).map(attestationView);
    node.attestations_total = attestations.length;
  }
  return node;
}

/** An event as it is known. */
export function viewOf(state: AttesterState, event: Known): JsonObject {
  const { trust, signedBy, withdrawn, truncated, key } = event;
  const view: JsonObject = {
    id: event.id,
    is_known: true,
    domain: event.domain,
    seq: event.seq,
    type: event.type,
    source: event.source,
    created_at: formatInstant(event.createdAt),
    logged_at: formatInstant(event.at),
    digest: event.digest,
  };
  if (trust !== undefined) view.source_trust = trust;
  if (signedBy !== undefined) view.signed_by = signedBy;
  if (key !== undefined) {
    view.subject = key;
    view.is_live = event.isLive;
  }
  if (event.isAmbiguous) view.is_ambiguous = true;
  if (isLost(state, event)) view.is_lost = true;
  if (withdrawn !== undefined) view.withdrawn = { event_id: withdrawn.id, by: withdrawn.by };
  if (truncated !== undefined) view.truncated_by = truncated;
  return view;
}

/** Who, how, when, and what of it was taken back. */
export function attestationView(attestation: Attestation): JsonObject {
  const { id, source, claimed, method, result, at, of, revoked } = attestation;
  const view: JsonObject = {
    event_id: id,
    source,
    method,
    at: formatInstant(at),
    counts: revoked === undefined && source !== of.source,
  };
  if (claimed !== undefined) view.claimed_attestor = claimed;
  if (result !== undefined) view.result = result;
  if (revoked !== undefined) {
    const { id: by_event, by, reason, at: when } = revoked;
    view.revoked = { event_id: by_event, by, reason, at: formatInstant(when) };
  }
  return view;
}
