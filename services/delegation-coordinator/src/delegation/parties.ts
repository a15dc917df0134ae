/** Whom an event of the family `delegation` names; what it leaves out is read from its sender and the state. */
import type { Envelope } from "@harmovela/envelope";
import { isForBus } from "../families/derived.ts";
import type { TokenBinding } from "../tokens/judge.ts";
import type { Delegation } from "./state.ts";

/** To whom an offer goes: the field that says so, else the agent to whom the event is addressed. */
export function delegateNamed(envelope: Envelope): string | undefined {
  return envelope.delegated_to ?? (isForBus(envelope) ? undefined : envelope.target);
}

/** Whether an event speaks of the parties in force; it need not name them. An open offer is its taker's. */
export function namesParties(delegation: Delegation, envelope: Envelope): boolean {
  const { delegatedBy, delegatedTo = envelope.source } = delegation;
  const { delegated_by = delegatedBy, delegated_to = delegatedTo } = envelope;
  return delegated_by === delegatedBy && delegated_to === delegatedTo;
}

/** What a token of a handoff must be bound to: what its event says. */
export function bindingOf(delegation: Delegation, envelope: Envelope): TokenBinding {
  return {
    ...bindingInForce(delegation),
    ...(envelope.delegated_by === undefined ? {} : { delegatedBy: envelope.delegated_by }),
    ...(envelope.delegated_to === undefined ? {} : { delegatedTo: envelope.delegated_to }),
  };
}

/** What a token shown later must be bound to: the parties between whom the task changed hands. */
export function bindingInForce(delegation: Delegation): TokenBinding {
  const { delegatedBy, delegatedTo = "", taskId, parentId } = delegation;
  return { delegatedBy, delegatedTo, taskId, parentId };
}
