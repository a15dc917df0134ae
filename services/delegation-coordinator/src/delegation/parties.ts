/** Whom an event of the family `delegation` names; what it leaves out is read from its sender and the state. */
import type { Envelope } from "@harmovela/envelope";
import type { TokenBinding } from "../tokens/judge.ts";
import type { Delegation } from "./state.ts";

/** To whom an offer goes: the field that says so, else whom the event is addressed to. */
export function delegateNamed({ delegated_to, target }: Envelope): string | undefined {
  return delegated_to ?? target;
}

/** Whether an event speaks of the parties in force; it need not name them. */
export function namesParties(delegation: Delegation, envelope: Envelope): boolean {
  const { delegated_by = delegation.delegatedBy, delegated_to = delegation.delegatedTo } = envelope;
  return delegated_by === delegation.delegatedBy && delegated_to === delegation.delegatedTo;
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
  const { delegatedBy, delegatedTo, taskId, parentId } = delegation;
  return { delegatedBy, delegatedTo, taskId, parentId };
}
