/** The rules around a task: session, rights, required fields, budget, then the family's own (architecture, section 4). */
import {
  type DecideContext,
  type Decision,
  isHarness,
  type Judged,
  judgeConditions,
  judgeSession,
  proofRefusal,
  rejectionTypeOf,
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
  if (denied) return { reject: denied, as: rejectionTypeOf(envelope.type) };
  const refused =
    judgeConditions(state.sessions, tenant, envelope, settings) ??
    proofRefusal(state.sessions, input, settings, ctx.now) ??
    costRefusal(state, tenant, envelope);
  if (refused) return { reject: refused, as: rejectionTypeOf(envelope.type) };

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
