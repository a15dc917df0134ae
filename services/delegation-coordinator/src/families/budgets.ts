/**
 * Budgets (spec 3.2, section 11, C22): one counter for each, in either form of payload. Every accepted
 * envelope that names a budget adds its `budget_cost`; what would pass the limit is refused.
 */
import type { Decision, Envelope, EventEntry, Instant, Judged } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { payloadObject, textOf } from "../rules/identity.ts";
import { isObject } from "./policy.ts";
import type { Budget, FamilyState, TenantFamilies } from "./state.ts";
import { remember } from "./unused.ts";

const ESTABLISH = "budget.establish";

/** Undefined when the envelope costs nothing, or nothing that somebody set a limit for. */
export function costRefusal(
  state: FamilyState,
  tenant: string,
  { budget_id: id, budget_cost: cost }: Envelope,
): ErrorPayload | undefined {
  if (typeof id !== "string" || typeof cost !== "number") return undefined;
  if (cost < 0) {
    const details = { path: "budget_cost" };
    return reject("invalid_envelope", "budget_cost must be at least 0", details);
  }
  const budget = state.tenants.get(tenant)?.budgets.get(id);
  if (budget === undefined || cost === 0) return undefined;
  if (!budget.isExhausted && sum(budget.spent, cost) <= budget.limit) return undefined;
  return reject("budget_exceeded", "the cost passes what is left of the budget", {
    budget_id: id,
    limit: budget.limit,
    spent: budget.spent,
    cost,
    exhausted: budget.isExhausted,
  });
}

/** Adds the cost of an accepted envelope. */
export function spend(
  tenant: TenantFamilies,
  { budget_id: id, budget_cost: cost }: Envelope,
  at: Instant,
): void {
  if (typeof id !== "string" || typeof cost !== "number" || !(cost > 0)) return;
  const budget = tenant.budgets.get(id);
  if (budget === undefined) return;
  budget.memory.usedAt = at;
  budget.spent = sum(budget.spent, cost);
  budget.isExhausted ||= budget.spent >= budget.limit;
}

/** Costs are decimal: of a sum that is not whole the last digit of a double is rounding, and no cost. */
function sum(spent: number, cost: number): number {
  const whole = spent + cost;
  return Number.isInteger(whole) ? whole : Number(whole.toPrecision(15));
}

/** A budget that still holds somebody back is in use. */
export function noteRefusal(
  tenant: TenantFamilies | undefined,
  envelope: Envelope,
  at: Instant,
): void {
  const error = payloadObject(envelope)?.error;
  if (!isObject(error) || error.code !== "budget_exceeded" || !isObject(error.details)) return;
  const { budget_id: id } = error.details;
  const budget = typeof id === "string" ? tenant?.budgets.get(id) : undefined;
  if (budget) budget.memory.usedAt = at;
}

/** Whoever established a budget is the only one who may change it. */
export function decideBudget(state: FamilyState, { envelope, tenant, source }: Judged): Decision {
  const { type } = envelope;
  if (type === "adaptation.budget.established") {
    const authority = payloadObject(envelope)?.authority;
    const capability = isObject(authority) ? authority.capability : undefined;
    if (capability !== undefined && capability !== ESTABLISH) {
      const details = { required: ESTABLISH };
      return { reject: reject("missing_capability", "this may not establish budgets", details) };
    }
  } else if (type !== "adaptation.budget.adjusted") return { accept: envelope };
  const id = budgetIdOf(envelope);
  const known = id === undefined ? undefined : state.tenants.get(tenant)?.budgets.get(id);
  if (known === undefined) return { accept: envelope };
  if (known.issuer !== source) {
    const details = { budget_id: known.id };
    return { reject: reject("unauthorized", "this budget belongs to another agent", details) };
  }
  if (type === "adaptation.budget.adjusted") return { accept: envelope };
  const details = { budget_id: known.id, spent: known.spent };
  return { reject: reject("protocol_error", "this budget is established already", details) };
}

export function evolveBudget(
  state: FamilyState,
  tenant: TenantFamilies,
  { envelope, at }: EventEntry,
): void {
  const id = budgetIdOf(envelope);
  if (id === undefined) return;
  const known = tenant.budgets.get(id);
  const limit = limitOf(payloadObject(envelope));
  if (envelope.type === "adaptation.budget.established") {
    if (limit === undefined || known) return;
    const budget: Budget = {
      id,
      issuer: envelope.source,
      limit,
      spent: 0,
      isExhausted: limit <= 0,
      memory: remember(state, tenant, { kind: "budgets", key: id, at }),
    };
    tenant.budgets.set(id, budget);
    return;
  }
  // What others observe of a budget is a fact, and no change of it.
  if (known?.issuer !== envelope.source) return;
  known.memory.usedAt = at;
  if (envelope.type === "adaptation.budget.exhausted") known.isExhausted = true;
  else if (envelope.type === "adaptation.budget.adjusted" && limit !== undefined) {
    known.limit = limit;
    known.isExhausted = known.spent >= limit;
  }
}

/** Its own name, or in the other form the scope that it limits. */
function budgetIdOf(envelope: Envelope): string | undefined {
  const named = textOf(envelope, "budget_id");
  if (named !== undefined) return named;
  const type = textOf(envelope, "scope_type");
  const id = textOf(envelope, "scope_id");
  return type === undefined || id === undefined ? undefined : `${type}:${id}`;
}

function limitOf(payload: JsonObject | undefined): number | undefined {
  const budget = payload?.budget;
  const candidates = [
    payload?.limit,
    payload?.new_limit,
    isObject(budget) ? budget.max_cost_usd_millicents : undefined,
  ];
  return candidates.find((value) => typeof value === "number" && value >= 0) as number | undefined;
}
