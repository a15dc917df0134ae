/**
 * A lineage, link by link (spec section 8): oldest first, each link an event that stands in a log, is what it
 * is said to be, follows from the one before and still holds.
 */
import { type Instant, SKEW_MS } from "@harmovela/envelope";
import { CYCLE_EVENTS_MAX } from "../settings.ts";
import { type AttesterState, isLost, type Known, type Link, type TenantState } from "../state.ts";

/**
 * `gap`: a link between two others is missing, or can no longer be had. `unknown_link`: no log has shown it.
 * `altered`: it is not what it is said to be. `unverifiable`: it is there and proves nothing.
 */
export type ChainResult = "intact" | "gap" | "unknown_link" | "altered" | "empty" | "unverifiable";

export type LinkReason =
  | "not_seen"
  | "source"
  | "digest"
  | "skipped"
  | "truncated"
  | "duplicate"
  | "cycle"
  | "out_of_order"
  | "retracted"
  | "ambiguous";

export interface BadLink {
  readonly index: number;
  readonly id: string;
  readonly result: Exclude<ChainResult, "intact" | "empty">;
  readonly reason: LinkReason;
}

/** What is held against its links: an event that is known, or one that is about to be judged. */
export interface Bearer {
  readonly id: string;
  readonly createdAt: Instant;
  readonly links: readonly Link[];
  readonly truncated?: string | undefined;
}

export interface ChainReport {
  readonly result: ChainResult;
  /** How many links there are, and how many of them were looked at: up to the first bad one. */
  readonly links: number;
  readonly checked: number;
  readonly firstBad: BadLink | undefined;
}

export function inspectChain(
  state: AttesterState,
  tenant: TenantState,
  bearer: Bearer,
): ChainReport {
  const links = bearer.links.length;
  if (links === 0) return { result: "empty", links, checked: 0, firstBad: undefined };
  for (const bad of badLinks(state, tenant, bearer)) {
    return { result: bad.result, links, checked: bad.index + 1, firstBad: bad };
  }
  return { result: "intact", links, checked: links, firstBad: undefined };
}

/** Every bad link, in the order of the chain. */
export function* badLinks(
  state: AttesterState,
  tenant: TenantState,
  bearer: Bearer,
): Generator<BadLink> {
  const seen = new Set<string>();
  let previous: Known | undefined;
  for (const [index, link] of bearer.links.entries()) {
    const { id } = link;
    const bad = (result: BadLink["result"], reason: LinkReason): BadLink => ({
      index,
      id,
      result,
      reason,
    });
    const event = tenant.events.get(id);
    if (seen.has(id)) yield bad("unverifiable", "duplicate");
    else if (id === bearer.id || event?.links.some((cited) => cited.id === bearer.id)) {
      yield bad("unverifiable", "cycle");
    } else if (event === undefined) {
      yield bearer.truncated === undefined
        ? bad("unknown_link", "not_seen")
        : bad("gap", "truncated");
    } else if (event.isAmbiguous) yield bad("unverifiable", "ambiguous");
    else if (link.source !== undefined && link.source !== event.source) {
      yield bad("altered", "source");
    } else if (link.digest !== undefined && link.digest !== event.digest) {
      yield bad("altered", "digest");
    } else if (isLost(state, event)) yield bad("gap", "truncated");
    else if (isSkipping(bearer.links[index - 1], event)) yield bad("gap", "skipped");
    else if (previous !== undefined && event.createdAt < previous.createdAt - SKEW_MS) {
      yield bad("unverifiable", "out_of_order");
    } else if (index === bearer.links.length - 1 && bearer.createdAt < event.createdAt - SKEW_MS) {
      yield bad("unverifiable", "out_of_order");
    } else if (event.withdrawn !== undefined) yield bad("unverifiable", "retracted");
    seen.add(id);
    previous = event;
  }
}

/** It names what it follows from, and the link before is none of that: something between them is left out. */
function isSkipping(before: Link | undefined, { links }: Known): boolean {
  if (before === undefined || links.length === 0 || links.at(-1)?.id === before.id) return false;
  return !links.some(({ id }) => id === before.id);
}

/**
 * Whether what an event rests on rests on that event itself: its id was cited before it came. Looks at a
 * bounded number of events, the nearest first; a longer way round is seen when it is walked.
 */
export function comesBack(tenant: TenantState, { id, links }: Bearer): boolean {
  const seen = new Set<string>();
  const queue = links.map((link) => link.id);
  for (const next of queue) {
    if (next === id) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    if (seen.size > CYCLE_EVENTS_MAX) return false;
    for (const link of tenant.events.get(next)?.links ?? []) {
      if (!seen.has(link.id)) queue.push(link.id);
    }
  }
  return false;
}
