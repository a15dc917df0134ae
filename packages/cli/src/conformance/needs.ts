/** What fixtures need that may not exist yet. A file that needs something missing is never passed. */
import { type Domain, domainOf } from "@harmovela/envelope";
import type { Expectation } from "./manifest.ts";

export interface Feature {
  name: string;
  exists: boolean;
  /** Whether a file of these types, run for this expectation, needs it. */
  isNeeded: (types: readonly string[], expectation: Expectation) => boolean;
  /** A `reject_some` file passes without it when a rule that exists refuses a line. */
  isOptionalForRefusal?: boolean;
}

const holds =
  (...prefixes: string[]) =>
  (types: readonly string[]): boolean =>
    types.some((type) => prefixes.some((prefix) => type.startsWith(prefix)));

const ofDomain =
  (domain: Domain) =>
  (types: readonly string[], expectation: Expectation): boolean =>
    expectation !== "accept_all" && types.some((type) => domainOf(type) === domain);

/** The whole table; what comes into being is set to `exists: true` here. */
export const FEATURES: readonly Feature[] = [
  {
    name: "sessions",
    exists: true,
    isNeeded: (types) =>
      types.some((type) => type.startsWith("session.") && type !== "session.heartbeat") ||
      holds("capabilities.")(types),
    isOptionalForRefusal: true,
  },
  {
    name: "subscriptions",
    exists: true,
    isNeeded: holds("subscription."),
    isOptionalForRefusal: true,
  },
  {
    name: "delivery tracking",
    exists: false,
    isNeeded: (types, expectation) =>
      expectation === "delivery_e2e" ||
      holds("event.redelivered", "event.replayed", "event.dead_lettered")(types),
  },
  { name: "delegations", exists: true, isNeeded: holds("delegation.") },
  { name: "commands and queries", exists: true, isNeeded: holds("command.", "query.") },
  { name: "adaptation budgets", exists: true, isNeeded: holds("adaptation.") },
  {
    name: "beliefs",
    exists: true,
    isNeeded: ofDomain("beliefs"),
    isOptionalForRefusal: true,
  },
  {
    name: "interruptions",
    exists: true,
    isNeeded: ofDomain("interruptions"),
    isOptionalForRefusal: true,
  },
  {
    name: "provenance",
    exists: true,
    isNeeded: ofDomain("provenance"),
    isOptionalForRefusal: true,
  },
];
