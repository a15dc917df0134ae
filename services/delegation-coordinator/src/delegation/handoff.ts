/**
 * `delegation.handoff.completed`, and tokens shown with anything else (spec 5.6, 7).
 *
 * H1 The token is judged before the state: a token used twice is told so, whatever became of the task.
 * H2 What was proved is written into the entry, so that a fold judges nothing again.
 */
import {
  type Decision,
  type Envelope,
  type Instant,
  type Judged,
  profilesInForce,
  type TokenFacts,
} from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import type { TaskSettings } from "../settings.ts";
import { findTask, type TaskState } from "../state.ts";
import type { TokenClaims } from "../tokens/claims.ts";
import { judgeHandoffToken, judgeShownToken, type Proof } from "../tokens/judge.ts";
import { createTokenMemory } from "../tokens/memory.ts";
import { bindingInForce, bindingOf, namesParties } from "./parties.ts";
import { notTheParties, outOfTurn, standingRefusal, stranger } from "./refusals.ts";
import { type CameBy, type Delegation, isParty } from "./state.ts";

/** Under these a token must prove something (spec 7, section 11 C15). */
const DEMANDING = ["harmovela.coordination.v1", "harmovela.security.v1"];

/** Where the entry of a handoff says what its token proved (H2). Nobody else may fill it. */
export const PROOF_FIELD = "handoff_proof";

export function decideHandoff(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  delegation: Delegation,
  now: Instant,
): Decision {
  const { envelope, source } = input;
  const { type } = envelope;
  if (!isParty(delegation, source)) return { reject: stranger(delegation, type, source) };
  let proof: Proof | undefined;
  if (envelope.handoff_token !== undefined && mayHandOff(delegation, source)) {
    const judged = judgeToken(state, settings, input, delegation, now);
    if ("usedBySame" in judged) return { duplicate: { seq: judged.usedBySame } };
    if ("refused" in judged) return { reject: judged.refused };
    proof = judged.proof;
  }
  const refused = standingRefusal(delegation, envelope);
  if (refused) return { reject: refused };
  if (source !== delegation.delegatedBy || delegation.state !== "accepted") {
    return { reject: outOfTurn(delegation, type, source) };
  }
  if (!namesParties(delegation, envelope)) return { reject: notTheParties(delegation) };
  return { accept: withProof(envelope, proof) };
}

/** Who gives the task away now, or has done so; of a delegate a token of a handoff says nothing. */
function mayHandOff({ delegatedBy, former }: Delegation, source: string): boolean {
  return delegatedBy === source || former.some((parties) => parties.delegatedBy === source);
}

function judgeToken(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  delegation: Delegation,
  now: Instant,
): ReturnType<typeof judgeHandoffToken> {
  const { envelope, tenant, source, token } = input;
  const memory = state.tenants.get(tenant)?.delegations.tokens;
  if (memory === undefined) return { proof: undefined };
  return judgeHandoffToken(memory, {
    facts: token,
    source,
    eventId: envelope.id,
    binding: bindingOf(delegation, envelope),
    isDemanded: isProofDemanded(state, settings, input),
    now,
    isCurrent: (claims) => !isOfFormerParties(delegation, claims),
  });
}

function isOfFormerParties({ delegatedBy, delegatedTo, former }: Delegation, claims: TokenClaims) {
  if (claims.iss === delegatedBy && claims.sub === delegatedTo) return false;
  return former.some((was) => was.delegatedBy === claims.iss && was.delegatedTo === claims.sub);
}

function isProofDemanded(
  { families }: TaskState,
  settings: TaskSettings,
  { tenant, envelope }: Judged,
): boolean {
  const inForce = profilesInForce(families.sessions, tenant, envelope, settings);
  return DEMANDING.some((profile) => inForce.includes(profile));
}

function withProof(envelope: Envelope, proof: Proof | undefined): Envelope {
  if (proof === undefined && envelope[PROOF_FIELD] === undefined) return envelope;
  const { [PROOF_FIELD]: _claimed, ...sent } = envelope;
  return (proof === undefined ? sent : { ...sent, [PROOF_FIELD]: { ...proof } }) as Envelope;
}

/** What the decision wrote; an entry of the log is its own proof. */
export function proofOf(envelope: Envelope): Proof | undefined {
  return envelope[PROOF_FIELD] as Proof | undefined;
}

/**
 * A token that comes with a query or with another event of the delegation: it must be the one by
 * which the task came to its sender, and not be superseded (section 11, C14). An offer of the owner's
 * that was refused leaves the owner its own.
 */
export function shownTokenRefusal(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  delegation: Delegation | undefined,
  now: Instant,
): ErrorPayload | undefined {
  const { envelope, tenant, source, token } = input;
  if (envelope.handoff_token === undefined) return undefined;
  const presented = { facts: token, source, isDemanded: isProofDemanded(state, settings, input) };
  const memory = state.tenants.get(tenant)?.delegations.tokens ?? createTokenMemory(tenant);
  const came = delegation && cameByShown(delegation, token);
  const task = delegation && findTask(state, tenant, delegation.taskId);
  const verdict = judgeShownToken(memory, {
    ...presented,
    now,
    binding: delegation && { ...bindingInForce(delegation), ...came },
    isFormer: (claims) =>
      delegation !== undefined && !came && isOfFormerParties(delegation, claims),
    isCurrent: (claims) =>
      came ? task !== undefined && !task.ended : !!delegation && isCurrent(delegation, claims),
  });
  return "refused" in verdict ? verdict.refused : undefined;
}

/** The handoff behind a refused offer, when the token is the one that it used. */
function cameByShown(
  { state, cameBy }: Delegation,
  token: TokenFacts | undefined,
): CameBy | undefined {
  const jti = token?.kind === "verified" ? token.claims.jti : undefined;
  return state === "rejected" && cameBy?.jti === jti ? cameBy : undefined;
}

function isCurrent({ task, state, handoff }: Delegation, claims: TokenClaims): boolean {
  if (task === undefined || task.ended) return false;
  return state === "handed_off" ? handoff?.jti === claims.jti : state === "accepted";
}
