/** The services and the operator as candidates for keys. */
import { createTracker } from "@harmovela/belief-tracker";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain } from "@harmovela/envelope";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import type { Candidate } from "./enrol.ts";

const SERVICES: readonly { domain: Domain; service: string }[] = [
  createCoordinator(),
  createTracker(),
  createManager(),
  createAttester(),
];

/** May do everything; also the name of its key's file. */
export const OPERATOR = "operator";
/** A key for each: who writes answers nobody (architecture, section 3). */
export const CONNECTIONS = ["writer", "answerer"] as const;

/** What keys can be made for besides agents: the domains, and an operator. */
export const ENROLLABLE: readonly string[] = [...SERVICES.map(({ domain }) => domain), OPERATOR];

/** The keys of the service of a domain, or the one of an operator. */
export function candidatesOf(which: string): Candidate[] {
  const made = SERVICES.find(({ domain }) => domain === which);
  if (made === undefined) {
    return [{ identity: { kind: OPERATOR, name: OPERATOR }, file: [OPERATOR] }];
  }
  const { domain, service } = made;
  return CONNECTIONS.map((connection) => ({
    identity: { kind: "service", domain, service, connection },
    file: ["service", domain, connection],
  }));
}
