/** Commands and queries as data (spec 5.9): which words there are, who says them, what they end. */
import type { Envelope, RejectionType } from "@harmovela/envelope";
import type { ErrorCode } from "@harmovela/failure";
import { textOf } from "../rules/identity.ts";
import type { Exchange, ExchangeKind, FamilyState, TenantFamilies } from "./state.ts";

export interface ExchangeRules {
  readonly kind: ExchangeKind;
  readonly invalid: ErrorCode;
  readonly rejected: RejectionType;
  /** Words of the runtime itself, which a harness may repeat. */
  readonly echoed: ReadonlySet<string>;
  /** Words that only a live request without acceptance allows. */
  readonly early: ReadonlySet<string>;
}

const RULES: Readonly<Record<ExchangeKind, ExchangeRules>> = {
  command: {
    kind: "command",
    invalid: "invalid_command",
    rejected: "command.rejected",
    echoed: new Set(["command.accepted", "command.rejected"]),
    early: new Set(["command.accepted", "command.rejected"]),
  },
  query: {
    kind: "query",
    invalid: "invalid_query",
    rejected: "query.rejected",
    echoed: new Set(["query.response", "query.rejected"]),
    early: new Set(),
  },
};

/** The rules of the family that a type belongs to. */
export function exchangeRulesOf(type: string): ExchangeRules | undefined {
  if (type.startsWith("command.")) return RULES.command;
  return type.startsWith("query.") ? RULES.query : undefined;
}

export function exchangesOf(tenant: TenantFamilies, kind: ExchangeKind): Map<string, Exchange> {
  return kind === "command" ? tenant.commands : tenant.queries;
}

export function findExchange(
  state: FamilyState,
  tenant: string,
  kind: ExchangeKind,
  correlation: string | undefined,
): Exchange | undefined {
  const known = state.tenants.get(tenant);
  if (known === undefined || correlation === undefined) return undefined;
  return exchangesOf(known, kind).get(correlation);
}

/** Of an answer: the envelope says it, or the payload does. */
export function correlationOf(envelope: Envelope): string | undefined {
  return envelope.correlation_id || textOf(envelope, "correlation_id");
}
