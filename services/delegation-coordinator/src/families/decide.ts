/** The rules around a task: session, rights, required fields, budget, then the family's own (architecture, section 4). */
import {
  type DecideContext,
  type Decision,
  type Envelope,
  isHarness,
  type Judged,
  judgeConditions,
  judgeSession,
  proofRefusal,
  type RejectionType,
  rightsRefusal,
} from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { costRefusal, decideBudget } from "./budgets.ts";
import { decideExchange } from "./decide-exchange.ts";
import { decideSession } from "./sessions.ts";
import type { FamilySettings } from "./settings.ts";
import type { FamilyState } from "./state.ts";
import { decideSubscription } from "./subscriptions.ts";
import { decideToolCall } from "./tool-calls.ts";

/** Undefined: nothing here stands against it, and another rule says what it means. */
export function decideFamily(
  state: FamilyState,
  settings: FamilySettings,
  input: Judged,
  ctx: DecideContext,
): Decision | undefined {
  const { envelope, tenant, source } = input;
  if (settings.authenticated && isHarness(source)) {
    return { reject: reject("unauthorized", "only the runtime speaks as a harness") };
  }
  const closed = judgeSession(state.sessions, tenant, envelope, settings);
  if (closed) return { reject: closed };
  const denied = rightsRefusal(input);
  if (denied) return { reject: denied, ...refusalType(envelope) };
  const refused =
    judgeConditions(state.sessions, tenant, envelope, settings) ??
    proofRefusal(state.sessions, input, settings, ctx.now) ??
    costRefusal(state, tenant, envelope);
  if (refused) return { reject: refused, ...refusalType(envelope) };

  switch (envelope.type.slice(0, envelope.type.indexOf("."))) {
    case "session":
      return decideSession(state, input);
    case "subscription":
      return decideSubscription(state, settings, input, ctx);
    case "command":
    case "query":
      return decideExchange(state, settings, input, ctx);
    case "tool":
      return decideToolCall(state, settings, input, ctx);
    case "adaptation":
      return decideBudget(state, input);
    default:
      return undefined;
  }
}

const REFUSAL_TYPES: ReadonlyMap<string, RejectionType> = new Map([
  ["subscription.requested", "subscription.rejected"],
  ["command.requested", "command.rejected"],
  ["query.requested", "query.rejected"],
]);

/** Requests of these families are refused with a word of their own. */
function refusalType({ type }: Envelope): { as?: RejectionType } {
  const as = REFUSAL_TYPES.get(type);
  return as === undefined ? {} : { as };
}
