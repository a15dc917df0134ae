import type { Frame } from "../frame.ts";
import { isObject } from "../record.ts";
import type { TaskContext, TaskEvent } from "../tasks/context.ts";
import { isTerminal } from "../tasks/table.ts";
import type { DelegationBook } from "./book.ts";
import type { Delegation } from "./delegation.ts";
import type { TokenBook } from "./token-book.ts";

/** Longest life of a token, seconds (architecture, section 6). */
const LIFETIME_MAX_S = 24 * 3_600;

/** How far `iat` may lie ahead of the clock, ms (spec 7, check 6). */
const SKEW_MS = 60_000;

/** Under these a handoff must prove its token (spec 4.2, 7). */
const DEMANDING = ["harmovela.coordination.v1", "harmovela.security.v1"];

interface Issue {
  jti: string;
  iss: string;
  sub: string;
  task: string;
  parent: string | undefined;
  iat: number;
  exp: number;
}

function readIssue(body: Record<string, unknown>): Issue | undefined {
  const { jti, iss, sub, task_id: task, parent_task_id: parent, iat, exp } = body;
  if (typeof jti !== "string" || typeof iss !== "string" || typeof sub !== "string")
    return undefined;
  if (typeof task !== "string" || (parent !== undefined && typeof parent !== "string")) {
    return undefined;
  }
  if (typeof iat !== "number" || typeof exp !== "number") return undefined;
  return { jti, iss, sub, task, parent, iat, exp };
}

/** A control entry `token_issued`: what a token says that the service has signed. */
export function checkIssue(
  context: TaskContext,
  book: DelegationBook,
  { tenant, frame, body }: { tenant: string; frame: Frame; body: Record<string, unknown> },
): void {
  const { sink } = context;
  const issue = readIssue(body);
  if (issue === undefined) {
    sink.add("control-body", "a claim of the issued token is missing");
    return;
  }
  const { jti, iss, sub, task, parent, iat, exp } = issue;
  const isTimely = iat * 1_000 <= frame.at + SKEW_MS && exp > iat && exp - iat <= LIFETIME_MAX_S;
  if (!isTimely) sink.add("token-lifetime", `token of ${task} from ${iat} to ${exp}`, task);
  if (book.tokens.get(tenant, jti, frame.at) !== undefined) {
    sink.add("token-jti", `the token ${jti} of ${task} is not the first`, task);
  }
  const delegation = book.get(tenant, task);
  if (!(delegation === undefined && context.isLenient) && !isEntitled(delegation, issue)) {
    const state = delegation?.state ?? "unknown";
    sink.add("token-entitlement", `${iss} gets a token of ${task}, which is ${state}`, task);
  }
  const bound = { iss, sub, task, parent };
  const token = { exp: exp * 1_000, bound, isSpent: false, isVoid: false };
  book.tokens.set(tenant, jti, token, frame.at);
  delegation?.issued.push(jti);
}

/** Of an offer that was accepted and not handed off, for its parties and its tasks. */
function isEntitled(delegation: Delegation | undefined, issue: Issue): boolean {
  if (delegation?.isAdopted) return true;
  const task = delegation?.task;
  if (task === undefined || delegation?.state !== "accepted" || isTerminal(task.state))
    return false;
  const { delegatedBy, delegatedTo } = delegation;
  const isBound = issue.iss === delegatedBy && issue.sub === delegatedTo;
  return isBound && (task.isAdopted || issue.parent === task.parent?.id);
}

/** What the entry of a handoff says that its token proved: `handoff_proof`, never the token. */
export function checkProof(
  { sink }: TaskContext,
  tokens: TokenBook,
  event: TaskEvent,
  delegation: Delegation,
  profiles: readonly string[],
): void {
  const { tenant, envelope, frame } = event;
  const { id } = delegation;
  const proof = envelope.handoff_proof;
  if (proof === undefined) {
    const demanding = DEMANDING.find((profile) => profiles.includes(profile));
    if (demanding !== undefined) {
      sink.add("token-missing", `the handoff of ${id} proves nothing under ${demanding}`, id);
    }
    return;
  }
  if (!isObject(proof) || typeof proof.jti !== "string" || typeof proof.exp !== "number") {
    sink.add("token-missing", `the proof of the handoff of ${id} says nothing`, id);
    return;
  }
  const { jti, exp } = proof;
  if (frame.at >= exp) {
    sink.add("token-expired", `${id} is handed off at ${frame.at}, the token ends at ${exp}`, id);
  }
  const known = tokens.get(tenant, jti, frame.at);
  if (known?.isSpent) sink.add("token-reused", `the token ${jti} proves a second handoff`, id);
  else if (known?.isVoid) sink.add("token-void", `the token ${jti} is of an earlier offer`, id);
  const { bound } = known ?? {};
  const isBound =
    bound === undefined ||
    (bound.task === id &&
      bound.iss === delegation.delegatedBy &&
      bound.sub === delegation.delegatedTo);
  if (!isBound) sink.add("token-binding", `the token ${jti} was issued for another handoff`, id);
  tokens.set(tenant, jti, { ...known, exp, isSpent: true, isVoid: false }, frame.at);
}
