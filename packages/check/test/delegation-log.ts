/** Events of delegations, as the parties of the example logs say them. */
import { type Draft, type LogBuilder, T0 } from "./log-builder.ts";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

const REASON: Record<string, string> = { rejected: "busy", escalated: "stuck" };

/** `delegation.<name>` of a task: the planner offers it to the worker, by whose turn it is. */
export function del(
  log: LogBuilder,
  name: string,
  id: string,
  fields: Fields & { by?: string; from?: string; to?: string } = {},
): Draft {
  const { by, from = "agent:planner", to = "agent:worker", payload, ...rest } = fields;
  const isWorkers = name === "accepted" || name === "rejected";
  const reason = REASON[name] === undefined ? {} : { reason: REASON[name] };
  return log.send(`delegation.${name}`, by ?? (isWorkers ? to : from), {
    task_id: id,
    delegated_by: from,
    delegated_to: to,
    payload: { ...reason, ...payload },
    ...rest,
  });
}

/** The planner's running task_p, and task_c offered under it to the worker. */
export function offered(log: LogBuilder, fields: Fields = {}): Draft {
  log.submit("task_p", { source: "agent:planner" });
  log.task("started", "task_p", "agent:planner");
  return del(log, "requested", "task_c", { parent_task_id: "task_p", ...fields });
}

export function accepted(log: LogBuilder, fields: Fields = {}): Draft {
  offered(log, fields);
  return del(log, "accepted", "task_c");
}

/** A handoff that says which token it proved. */
export function handOff(log: LogBuilder, id: string, jti?: string, fields: Fields = {}): Draft {
  const proof =
    jti === undefined ? {} : { handoff_token: "opaque", handoff_proof: { jti, exp: T0 + 600_000 } };
  return del(log, "handoff.completed", id, { ...proof, ...fields });
}

/** A token that the service signed: for the planner's handoff of task_c to the worker. */
export function issue(log: LogBuilder, jti: string, claims: Record<string, unknown> = {}): void {
  const body = {
    jti,
    iss: "agent:planner",
    sub: "agent:worker",
    task_id: "task_c",
    parent_task_id: "task_p",
    iat: T0 / 1_000,
    exp: T0 / 1_000 + 600,
    ...claims,
  };
  log.push({ cause: `owed:${jti}`, kind: "token_issued", body });
}

/** The service finds an offer expired. */
export function expire(log: LogBuilder, id: string, reason = "deadline_expired"): Draft {
  const error = { code: "task_timeout", message: "nobody accepted it", retryable: true };
  return log.owe(`offer:${id}`, "delegation.rejected", {
    task_id: id,
    delegated_by: "agent:planner",
    delegated_to: "agent:worker",
    payload: { reason, error },
  });
}

export const inMs = (ms: number): string => new Date(T0 + ms).toISOString();
