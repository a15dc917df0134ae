/**
 * Who may take a claim back or change its window: the asserting side, that is its own source or the memory or
 * context system of its subject (spec 6.2; [R] for withdrawals too).
 */
import type { EventEntry } from "../judging.ts";
import { isService } from "../sessions/identity.ts";
import type { Spoken } from "./subject.ts";

/** `memory:` sources keep `memory:` subjects, `context:` sources `context:` ones, services all. */
export function keepsSubject(source: string, key: string): boolean {
  if (isService(source)) return true;
  return ["memory:", "context:"].some((kind) => key.startsWith(kind) && source.startsWith(kind));
}

/**
 * Sources that may take back the same event before it comes, so that whoever may do it is found among them
 * then; those who come first are kept, as many as a subject is likely to have on each side.
 */
export const EARLY_WITHDRAWALS_MAX = 64;

/** Whether a source may take back what was claimed. */
export function mayWithdraw(source: string, claim: Spoken): boolean {
  return source === claim.source || keepsSubject(source, claim.key);
}

/**
 * Of the live claims on a subject, by source, those that a sender speaks of: that of the source which said
 * what it names as its cause, else its own, else (for the system of the subject) all. Undefined: there are
 * claims, and none is its to change.
 */
export function claimsMeant<Claim>(
  key: string,
  claims: ReadonlyMap<string, Claim> | undefined,
  sender: string,
  named: Spoken | undefined,
): Claim[] | undefined {
  if (claims === undefined || claims.size === 0) return [];
  const meant = named?.key === key ? claims.get(named.source) : undefined;
  if (meant !== undefined && named !== undefined && mayWithdraw(sender, named)) return [meant];
  const own = claims.get(sender);
  if (own !== undefined) return [own];
  return keepsSubject(sender, key) ? [...claims.values()] : undefined;
}

/**
 * Whether an entry of the log of `beliefs` is the word of somebody who may claim something: what its service
 * writes by itself, or says again through the intake, claims nothing.
 */
export function isClaimed(
  { cause, envelope }: Pick<EventEntry, "cause" | "envelope">,
  service: string,
) {
  return "in" in cause && envelope.source !== service;
}
