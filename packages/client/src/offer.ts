/** An offer of work to this agent, as the log or a read shows it. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { formatCursor } from "./cursor.ts";
import { HANDOFF_FIELD, HANDOFF_FOLLOWS } from "./delegation-request.ts";
import type { Observed } from "./lane.ts";
import { isObject, RejectedError } from "./rejected-error.ts";
import type { WorkAgent } from "./work-agent.ts";

export interface Offer {
  taskId: string;
  parentId: string | undefined;
  delegatedBy: string;
  /** The request; after an escalation still the first one, which says what the work is. */
  request: Observed;
  /** The delegator completes a handoff once it is accepted. */
  isHandoffPromised: boolean;
}

/** The offer that a request makes. */
export function toOffer(request: Observed, taskId: string, delegatedBy?: string): Offer {
  const { envelope } = request;
  const payload = payloadOf(envelope);
  const parent = envelope.parent_task_id ?? payload.parent_task_id;
  return {
    taskId,
    parentId: typeof parent === "string" ? parent : undefined,
    delegatedBy: delegatedBy ?? envelope.delegated_by ?? envelope.source,
    request,
    isHandoffPromised: delegatedBy === undefined && payload[HANDOFF_FIELD] === HANDOFF_FOLLOWS,
  };
}

export function payloadOf({ payload }: Envelope): JsonObject {
  return (isObject(payload) ? payload : {}) as JsonObject;
}

/** Whether the task is offered to this agent and nobody has taken it. */
export async function isPending(agent: WorkAgent, taskId: string): Promise<boolean> {
  return isPendingView(agent, await viewOf(agent, "delegation", taskId));
}

/** Undefined when there is nothing of that id any more. */
export async function viewOf(agent: WorkAgent, verb: string, taskId: string): Promise<unknown> {
  try {
    return (await agent.read(verb, { task_id: taskId })).result;
  } catch (error) {
    if (error instanceof RejectedError && error.code === "task_error") return undefined;
    throw error;
  }
}

function isPendingView({ name }: WorkAgent, view: unknown): view is JsonObject {
  return (
    isObject(view) &&
    view.delegated_to === name &&
    (view.state === "requested" || view.state === "escalated")
  );
}

/** The offer of a task that was made before; undefined when there is none for this agent any more. */
export async function findOffer(agent: WorkAgent, taskId: string): Promise<Offer | undefined> {
  const view = await viewOf(agent, "delegation", taskId);
  if (!isPendingView(agent, view)) return undefined;
  const result = await viewOf(agent, "history", taskId);
  const events = isObject(result) && Array.isArray(result.events) ? result.events : [];
  const request = (events as Envelope[]).findLast(({ type }) => type === "delegation.requested");
  if (request === undefined) return undefined;
  const cursor = formatCursor({ domain: "tasks", seq: Number(view.last_seq) });
  const observed: Observed = { envelope: request, cursor, domain: "tasks" };
  const isSame = request.id === view.opened_by;
  return toOffer(observed, taskId, isSame ? undefined : String(view.delegated_by));
}

/** Tasks that wait for this agent to take them: those that nobody runs yet. */
export async function* listWaiting(agent: WorkAgent): AsyncGenerator<string, undefined> {
  for (let after: string | undefined; ; ) {
    const { result } = await agent.read("list", {
      agent: agent.name,
      state: "submitted",
      ...(after === undefined ? {} : { after }),
    });
    if (!isObject(result)) return undefined;
    for (const task of Array.isArray(result.tasks) ? result.tasks : [])
      if (isObject(task) && task.target === agent.name && typeof task.task_id === "string")
        yield task.task_id;
    if (typeof result.after !== "string") return undefined;
    after = result.after;
  }
}
