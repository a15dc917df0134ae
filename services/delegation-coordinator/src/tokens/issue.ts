/**
 * The issuing of handoff tokens (spec 7). A read that writes: what is issued becomes an entry of the
 * log before anybody gets the token.
 */
import { deriveId, type Instant, type TokenIssue } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { about, settlingRefusal } from "../delegation/refusals.ts";
import { findDelegation } from "../delegation/state.ts";
import type { TaskState } from "../state.ts";
import { LIFETIME_MS_MAX } from "./claims.ts";

/** A handoff follows within moments; a longer life is asked for. */
const LIFETIME_MS = 10 * 60_000;
/** Unused tokens of one delegation. */
const ISSUED_MAX = 100;

export interface IssueRequest {
  tenant: string;
  /** Who asks, as the subject says. */
  asker: string;
  /** `task_id`, and `ttl_ms` of at most 24 h. */
  params: JsonObject;
  now: Instant;
}

/**
 * What a token for the asker says: for the delegator of an accepted delegation alone, bound to its
 * parties and tasks. Refused: `invalid_query`, `unauthorized`, `protocol_error`, `task_error`.
 */
export function issueToken(
  state: TaskState,
  { tenant, asker, params, now }: IssueRequest,
): { issue: TokenIssue } | { refused: ErrorPayload } {
  const { task_id: taskId, ttl_ms: ttl = LIFETIME_MS } = params;
  if (typeof taskId !== "string" || taskId === "") {
    return { refused: reject("invalid_query", "task_id must be a non-empty string") };
  }
  if (typeof ttl !== "number" || !Number.isInteger(ttl) || ttl < 1000 || ttl > LIFETIME_MS_MAX) {
    const message = `ttl_ms must be a whole number from 1000 to ${LIFETIME_MS_MAX}`;
    return { refused: reject("invalid_query", message) };
  }
  const delegation = findDelegation(state, tenant, taskId);
  if (delegation === undefined || delegation.delegatedBy !== asker) {
    const details = { task_id: taskId };
    return { refused: reject("unauthorized", "only the delegator gets a token", details) };
  }
  const { task, delegatedBy, delegatedTo, parentId, issued, issuedCount } = delegation;
  const isReady = task !== undefined && !task.ended && delegation.state === "accepted";
  if (!isReady || delegatedTo === undefined) {
    const message = "a token is for a delegation that was accepted and not handed off";
    return { refused: reject("protocol_error", message, about(delegation)) };
  }
  const closed = settlingRefusal(task);
  if (closed) return { refused: closed };
  if (issued.filter(({ exp }) => exp > now).length >= ISSUED_MAX) {
    return { refused: reject("protocol_error", "too many unused tokens", about(delegation)) };
  }
  const iat = Math.floor(now / 1000);
  return {
    issue: {
      jti: deriveId(tenant, `token:${taskId}`, issuedCount, now),
      tenant,
      iss: delegatedBy,
      sub: delegatedTo,
      task_id: taskId,
      ...(parentId === undefined ? {} : { parent_task_id: parentId }),
      iat,
      exp: iat + Math.floor(ttl / 1000),
    },
  };
}
