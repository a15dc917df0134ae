/**
 * Evidence that can no longer be had (spec section 8). What lives and rests on it directly is told of once,
 * one event after the other: only what is cited stands in the heaps, so nothing is searched.
 */
import type { Instant, ObservedEntry } from "@harmovela/envelope";
import { release } from "./assertions.ts";
import { forgetLeaving } from "./forgetting.ts";
import { type AttesterState, type Known, openLog } from "./state.ts";

/** What is lost, when it was noticed, and a live assertion that rests on it. */
export interface Loss {
  readonly lost: Known;
  readonly assertion: Known;
  readonly at: Instant;
  /** Its log begins after it; else memory was needed for younger events. */
  readonly isTrimmed: boolean;
}

/** Logs begin later now. */
export function noteFirst(state: AttesterState, { first, at }: ObservedEntry): void {
  for (const domain of ["tasks", "beliefs", "interruptions", "provenance"] as const) {
    const told = first[domain];
    if (told === undefined) continue;
    const log = openLog(state, domain);
    if (told <= log.first) continue;
    log.first = told;
    log.firstAt = at;
  }
}

/** The next assertion to be told of. */
export function nextLoss(state: AttesterState): Loss | undefined {
  for (const log of state.logs.values()) {
    const citation = log.cited.peek();
    if (citation === undefined || citation.due >= log.first) continue;
    const lost = citation.event;
    for (const assertion of lost.citedBy ?? []) {
      return { lost, assertion, at: log.firstAt, isTrimmed: true };
    }
  }
  for (const [lost, at] of state.leaving) {
    for (const assertion of lost.citedBy ?? []) {
      return { lost, assertion, at, isTrimmed: false };
    }
  }
  return undefined;
}

/** It was told of, or cannot be: it rests on nothing any more that is watched over. */
export function endLoss(state: AttesterState, assertion: Known, id: string, at: Instant): void {
  assertion.truncated ??= id;
  release(state, assertion, at);
  for (const { id: of } of assertion.links) {
    const event = assertion.tenant.events.get(of);
    if (event !== undefined) forgetLeaving(state, event, at);
  }
}
