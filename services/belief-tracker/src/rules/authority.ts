/**
 * Who may take a claim back or change its window: the asserting side, that is its own source or the
 * memory or context system of its subject (spec 6.2; [R] for withdrawals too).
 */
import { isService } from "@harmovela/envelope";
import type { Claim, Node, Subject } from "../state.ts";

/** `memory:` sources keep `memory:` subjects, `context:` sources `context:` ones. */
function isSystemOf({ key }: Subject, source: string): boolean {
  if (isService(source)) return true;
  return ["memory:", "context:"].some((kind) => key.startsWith(kind) && source.startsWith(kind));
}

/**
 * The claims that a source speaks of: the one that it names as the cause, else its own, else (for
 * the system of the subject) all. Undefined: there are claims, and none is its to change.
 */
export function claimsToChange(
  subject: Subject | undefined,
  source: string,
  named: Node | undefined,
): Claim[] | undefined {
  if (subject === undefined || subject.claims.size === 0) return [];
  const isSystem = isSystemOf(subject, source);
  if (named?.kind === "claim" && subject.claims.get(named.source) === named) {
    if (named.source === source || isSystem) return [named];
  }
  const own = subject.claims.get(source);
  if (own !== undefined) return [own];
  return isSystem ? [...subject.claims.values()] : undefined;
}
