/** What an envelope means for the tasks that it finds. Changes nothing. */
import {
  type DecideContext,
  type Decision,
  type Judged,
  judgeConditions,
  judgeSession,
  proofRefusal,
  rightsRefusal,
  tellProof,
} from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { isUnprovenRuntime } from "./rules/authority.ts";
import { decideCompensation } from "./rules/compensation.ts";
import { decideInterruption } from "./rules/interruption.ts";
import type { ManagerSettings } from "./settings.ts";
import type { ManagerState } from "./state.ts";

export function decide(
  state: ManagerState,
  settings: ManagerSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant, source } = input;
  if (settings.authenticated && isUnprovenRuntime(source)) {
    return { reject: reject("unauthorized", "only services speak for the runtime") };
  }
  const refused =
    judgeSession(state.sessions, tenant, envelope, settings) ??
    rightsRefusal(input) ??
    judgeConditions(state.sessions, tenant, envelope, settings) ??
    proofRefusal(state.sessions, input, settings, ctx.now);
  if (refused) return { reject: refused };
  return tellProof(decideFamily(state, settings, input, ctx), input, settings, ctx.now);
}

function decideFamily(
  state: ManagerState,
  settings: ManagerSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope } = input;
  if (envelope.type.startsWith("interruption.")) {
    return decideInterruption(state, settings, input, ctx);
  }
  if (envelope.type.startsWith("compensation.")) return decideCompensation(state, settings, input);
  return { accept: envelope };
}
