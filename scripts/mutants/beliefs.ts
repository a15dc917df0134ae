import type { Mutant } from "./mutant.ts";

const TRACKER = "services/belief-tracker";
const CLAIMS = `${TRACKER}/test/claims.test.ts`;
const FRESHNESS = `${TRACKER}/test/freshness.test.ts`;
const BOUNDARIES = `${TRACKER}/test/boundaries.test.ts`;
const CHANGES = `${TRACKER}/test/change-boundaries.test.ts`;
const RETRACTION = `${TRACKER}/test/retraction.test.ts`;
const TRUNCATION = `${TRACKER}/test/truncation.test.ts`;

/** Each takes away a guard of the protocol (spec 6). */
export const BELIEF_MUTANTS: readonly Mutant[] = [
  {
    name: "beliefs: a claim that was taken back stays in the conflict",
    file: `${TRACKER}/src/claims.ts`,
    find: "  subject.claims.delete(source);\n",
    replace: "",
    tests: [CLAIMS],
  },
  {
    name: "beliefs: a claim that was taken back expires",
    file: `${TRACKER}/src/claims.ts`,
    find: "  closeWindow(state, claim);\n  subject.claims",
    replace: "  subject.claims",
    tests: [FRESHNESS],
  },
  {
    name: "beliefs: the later of two bounds governs a window",
    file: `${TRACKER}/src/rules/window.ts`,
    find: "Math.min(validUntil, staleAt)",
    replace: "Math.max(validUntil, staleAt)",
    tests: [FRESHNESS, BOUNDARIES],
  },
  {
    name: "beliefs: values are compared as they were written",
    file: `${TRACKER}/src/rules/value.ts`,
    find: "value === undefined ? undefined : canonicalJson(value);",
    replace: "value === undefined ? undefined : JSON.stringify(value);",
    tests: [CLAIMS],
  },
  {
    name: "beliefs: times that only meet overlap",
    file: `${TRACKER}/src/rules/conflict.ts`,
    find: "other.end > span.from && span.end > span.from) contested",
    replace: "other.end >= span.from && span.end > span.from) contested",
    tests: [CLAIMS],
  },
  {
    name: "beliefs: a conflict that has become smaller is told again",
    file: `${TRACKER}/src/conflicts.ts`,
    find: "  if (conflict !== undefined && isPartOf(contested, conflict.contested)) {",
    replace: "  if (conflict !== undefined && contested.size < 0) {",
    tests: [CLAIMS],
  },
  {
    name: "beliefs: anybody changes a window or takes a claim back",
    file: "packages/envelope/src/assertions/authority.ts",
    find: "  return keepsSubject(sender, key) ? [...claims.values()] : undefined;",
    replace: "  return [...claims.values()];",
    tests: [FRESHNESS, CLAIMS],
  },
  {
    name: "beliefs: a decision that is older than the one in force counts",
    file: `${TRACKER}/src/rules/window.ts`,
    find: "createdAt < (claim.change?.createdAt ?? claim.createdAt)",
    replace: "createdAt < claim.createdAt",
    tests: [FRESHNESS, CHANGES],
  },
  {
    name: "beliefs: nobody is told of a wrong previous_valid_until",
    file: `${TRACKER}/src/rules/window.ts`,
    find: "  if (previous !== undefined && previous !== claim.validUntil && previous !== endOf(claim)) {",
    replace: "  if (previous !== undefined && previous < 0) {",
    tests: [FRESHNESS],
  },
  {
    name: "beliefs: a window that was extended stays among the stale",
    file: `${TRACKER}/src/windows.ts`,
    find: "  claim.subject.tenant.stale.delete(claim);\n",
    replace: "",
    tests: [FRESHNESS],
  },
  {
    name: "beliefs: claims that end together expire each",
    file: `${TRACKER}/src/windows.ts`,
    find: "    if (other !== claim && isOpen) together.push(other);",
    replace: "    if (other !== claim && isOpen && end < 0) together.push(other);",
    tests: [FRESHNESS],
  },
  {
    name: "beliefs: an expiry is a millisecond early",
    file: `${TRACKER}/src/owed.ts`,
    find: "window.due <= Math.min(now",
    replace: "window.due - 1 <= Math.min(now",
    tests: [BOUNDARIES],
  },
  {
    name: "beliefs: what is about to be marked is marked by a second plan as well",
    file: `${TRACKER}/src/walks.ts`,
    find: "      if (claim.mark !== undefined || claim.due !== undefined) continue;\n",
    replace: "      if (claim.mark !== undefined) continue;\n",
    tests: [RETRACTION, TRUNCATION],
  },
  {
    name: "beliefs: what is concluded late from what was retracted is not marked",
    file: `${TRACKER}/src/claims.ts`,
    find: "  markLate(state, claim, entry);\n",
    replace: "",
    tests: [RETRACTION],
  },
  {
    name: "beliefs: a walk does not look below what is over",
    file: `${TRACKER}/src/walks.ts`,
    find: "      reach(walk, claim);\n",
    replace: "",
    tests: [RETRACTION],
  },
  {
    name: "beliefs: everybody waits for the marks of lost evidence",
    file: `${TRACKER}/src/owed.ts`,
    find: 'urgency: "step", due: 0 } as const',
    replace: 'urgency: "timer", due: 0 } as const',
    tests: [TRUNCATION],
  },
];
