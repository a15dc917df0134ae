import type { Envelope } from "@harmovela/envelope";
import { checkContract } from "./body.ts";
import type { FindingSink } from "./finding.ts";
import type { OpenPlan } from "./plan-book.ts";
import { isObject, type StoredRecord } from "./record.ts";

/**
 * Kinds of control entries, and whether they belong to a tenant (architecture, section 3). An
 * obligation that failed may be one that never came to name its tenant.
 */
export const TENANCY: ReadonlyMap<string, "host" | "tenant" | "either"> = new Map([
  ["epoch", "host"],
  ["position", "host"],
  ["refused", "host"],
  ["intake_gap", "host"],
  ["skipped", "host"],
  ["begun", "tenant"],
  ["token_issued", "tenant"],
  ["observed", "host"],
  ["obligation_failed", "either"],
]);

/** The plan of a `begun` entry; `isNamedByType`: its kind is the type of the event that ends it. */
export function readPlan(
  sink: FindingSink,
  { seq, subject }: StoredRecord,
  tenant: string,
  value: unknown,
  isNamedByType: boolean,
): OpenPlan | undefined {
  const plan = isObject(value) ? value : {};
  const { id, kind } = plan;
  if (typeof id !== "string" || typeof kind !== "string" || !isObject(plan.envelope)) {
    sink.add("begun-form", "id, kind or envelope of the plan is missing");
    return undefined;
  }
  const envelope: Envelope | undefined = checkContract(plan.envelope, sink);
  if (envelope === undefined) return undefined;
  if (envelope.id !== id || (isNamedByType && envelope.type !== kind)) {
    sink.add("begun-form", `plan ${id} (${kind}) of ${envelope.id} (${envelope.type})`);
    return undefined;
  }
  return { id, tenant, envelope, seq, subject, isAbandoned: false };
}
