/** What an event of the family `delegation` means (spec 5.6). Changes nothing. */
import {
  type DecideContext,
  type Decision,
  type Envelope,
  isHarness,
  type Judged,
} from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import { isElsewhere } from "../instances.ts";
import { hasTwoParents, taskIdOf } from "../rules/identity.ts";
import { alreadyEnded } from "../rules/refusals.ts";
import type { TaskSettings } from "../settings.ts";
import { findTask, type TaskState } from "../state.ts";
import { decideHandoff, shownTokenRefusal } from "./handoff.ts";
import { delegateNamed, namesParties } from "./parties.ts";
import { nothingRequested, notTheParties, outOfTurn, standingRefusal } from "./refusals.ts";
import { decideRequest } from "./request.ts";
import { type Delegation, type DelegationStateName, findDelegation } from "./state.ts";

/** From which states an answer to an offer leads on. */
const FROM: Readonly<Record<string, readonly DelegationStateName[]>> = {
  "delegation.accepted": ["requested", "escalated"],
  "delegation.rejected": ["requested", "accepted", "escalated"],
  "delegation.escalated": ["requested", "accepted", "handed_off"],
};

export function decideDelegation(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant, source } = input;
  const { type } = envelope;
  // An echo of what the runtime itself said changes nothing.
  if (isHarness(source)) return { accept: envelope };
  const id = taskIdOf(envelope);
  if (id === undefined) {
    const details = { missing: ["task_id"] };
    return { reject: reject("invalid_envelope", `${type} names no task`, details) };
  }
  if (hasTwoParents(envelope)) {
    const message = "envelope and payload name different parents";
    return { reject: reject("invalid_envelope", message, { task_id: id }) };
  }
  if (type === "delegation.requested") return decideRequest(state, settings, input, id, ctx);

  const delegation = findDelegation(state, tenant, id);
  if (delegation === undefined) {
    const task = findTask(state, tenant, id);
    return { reject: task?.ended ? alreadyEnded(task) : nothingRequested(id) };
  }
  if (type === "delegation.handoff.completed") {
    return decideHandoff(state, settings, input, delegation, ctx.now);
  }
  const refused =
    standingRefusal(delegation, envelope) ??
    shownTokenRefusal(state, settings, input, delegation, ctx.now) ??
    (type === "delegation.escalated"
      ? escalationRefusal(delegation, envelope)
      : answerRefusal(delegation, envelope));
  return refused ? { reject: refused } : { accept: envelope };
}

function isFrom(delegation: Delegation, type: string): boolean {
  return FROM[type]?.includes(delegation.state) ?? false;
}

/** Only the delegate accepts or rejects, and only what was offered to it; an open offer is anybody's to accept. */
function answerRefusal(delegation: Delegation, envelope: Envelope): ErrorPayload | undefined {
  const { source, type, session_id } = envelope;
  // A fellow of the same name took it, and only that one gives it back.
  const isFellows = delegation.state === "accepted" && isElsewhere(delegation.instance, session_id);
  const isOpen = delegation.delegatedTo === undefined && type === "delegation.accepted";
  const isDelegate = isOpen || source === delegation.delegatedTo;
  if (!isDelegate || isFellows || !isFrom(delegation, type))
    return outOfTurn(delegation, type, source);
  return namesParties(delegation, envelope) ? undefined : notTheParties(delegation);
}

/**
 * Either party takes the task to somebody else, in its own name or the other's (section 11, C27), or to
 * whoever accepts it first. Whose the task is may do so too, and while an escalation waits: who
 * does not answer holds nobody up.
 */
function escalationRefusal(delegation: Delegation, envelope: Envelope): ErrorPayload | undefined {
  const { source, type, delegated_by: by = source } = envelope;
  const { state, delegatedBy, delegatedTo, owner } = delegation;
  const parties = [delegatedBy, delegatedTo, owner];
  const isInTurn = isFrom(delegation, type) || (state === "escalated" && source === owner);
  if (!parties.includes(source) || !isInTurn) {
    return outOfTurn(delegation, type, source);
  }
  const to = delegateNamed(envelope);
  const isElsewhere = to === undefined || (to !== delegatedTo && to !== by);
  return parties.includes(by) && isElsewhere ? undefined : notTheParties(delegation);
}
