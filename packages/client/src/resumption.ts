/**
 * A task of this agent that is to go on (spec 5.7): whether it is for this process, and who of several takes it.
 *
 * R1 Who resumes a task in a session of a worker takes it up itself. Resumed by anybody else it is for any
 *    process of its owner: the first whose word is accepted has it, and the others are refused.
 */
import { type Envelope, newEventId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Checkpoint } from "./checkpoint-store.ts";
import type { Draft } from "./draft.ts";
import type { Observed } from "./lane.ts";
import { type Offer, toOffer, viewOf } from "./offer.ts";
import { isObject, RejectedError } from "./rejected-error.ts";
import { isTerminalState } from "./settled.ts";
import type { WorkAgent } from "./work-agent.ts";

export interface Resumption {
  offer: Offer;
  checkpoint: Checkpoint;
  /** What takes it up. */
  claim: Draft;
}

/** Whether a process that speaks in this session may take it up. */
export function isForSession(
  { source, session_id: by }: Envelope,
  agent: string,
  session: string,
): boolean {
  return source !== agent || by === undefined || by === session;
}

/** A live task of this agent as the service tells of it; undefined for any other. */
export async function findOwn(
  agent: WorkAgent,
  taskId: string,
): Promise<Record<string, unknown> | undefined> {
  const view = await viewOf(agent, "task", taskId);
  if (!isObject(view) || isTerminalState(view.state)) return undefined;
  return (view.worker ?? view.owner) === agent.name ? view : undefined;
}

/**
 * What an `interruption.resumed` lets go on; undefined when that is nothing of this agent's. Changes nothing.
 */
export async function findResumption(
  agent: WorkAgent,
  resumed: Envelope,
): Promise<Resumption | undefined> {
  const { id, task_id: taskId = "", checkpoint_id: checkpointId = "" } = resumed;
  const view = await findOwn(agent, taskId);
  if (view === undefined) return undefined;
  const request = await requestOf(agent, taskId, view);
  if (request === undefined) return undefined;
  const checkpoint = await agent.interruptions.checkpoint(taskId, checkpointId);
  const delegation = await viewOf(agent, "delegation", taskId);
  const by = isObject(delegation) ? String(delegation.delegated_by) : undefined;
  const isSame = isObject(delegation) && delegation.opened_by === request.envelope.id;
  const offer = { ...toOffer(request, taskId, isSame ? undefined : by), isHandoffPromised: false };
  return { offer, checkpoint, claim: claimOf(taskId, view.state, id, checkpointId) };
}

/** Whether this process has it (R1). */
export async function isTaken(agent: WorkAgent, { claim }: Resumption): Promise<boolean> {
  try {
    await agent.publish(claim);
    return true;
  } catch (error) {
    if (error instanceof RejectedError && !error.retryable) return false;
    throw error;
  }
}

/** What the task is: its delegation. Tasks that came in another way are for who asks for them. */
async function requestOf(
  agent: WorkAgent,
  taskId: string,
  view: Record<string, unknown>,
): Promise<Observed | undefined> {
  const entry = await agent.entryAt(taskId, Number(view.submitted_seq));
  if (entry === undefined) {
    throw new HarmovelaError("task_error", "what the task was is not kept any more", {
      details: { task_id: taskId },
    });
  }
  return entry.envelope.type === "delegation.requested" ? entry : undefined;
}

/** R1. Only accepted work has begun before `started` (spec 11, C41). */
function claimOf(taskId: string, state: unknown, resumedBy: string, checkpoint: string): Draft {
  const next = state === "accepted" || state === "submitted" ? "started" : "progress";
  const payload: JsonObject = {
    task_id: taskId,
    state: next,
    message: `goes on from checkpoint ${checkpoint}`,
  };
  return {
    // The same each time it is said: said again it gets the verdict that it has got.
    id: newEventId(),
    type: `task.${next}`,
    task_id: taskId,
    causation_id: resumedBy,
    payload,
  };
}
