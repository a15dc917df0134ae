/** What a process left behind when its session ended, saved by another process of the same agent. */
import type { Envelope } from "@harmovela/envelope";
import { type Checkpoint, fromTheStart } from "./checkpoint-store.ts";
import { toAcknowledgement, toSaved } from "./interruption-draft.ts";
import { payloadOf } from "./offer.ts";
import { RejectedError } from "./rejected-error.ts";
import { findOwn } from "./resumption.ts";
import type { WorkAgent } from "./work-agent.ts";

/** Whether a request stops a task because the session that had it has ended. */
export function isOfEndedSession(request: Envelope): boolean {
  const { ended_session_id: ended } = payloadOf(request);
  return request.source.startsWith("service:") && typeof ended === "string";
}

/**
 * Answers such a request with the newest checkpoint that the process has stored, so that the task can go on
 * elsewhere. Nothing happens when the task is not this agent's, or when another process is faster.
 */
export async function takeCare(agent: WorkAgent, request: Envelope): Promise<void> {
  const { id, task_id: taskId = "" } = request;
  const view = await findOwn(agent, taskId);
  if (view === undefined || view.session_id !== undefined) return;
  try {
    await agent.publish(toAcknowledgement(taskId, id));
    await agent.publish(toSaved(await newestOf(agent, taskId), id));
  } catch (error) {
    if (!(error instanceof RejectedError)) throw error;
  }
}

/** Of those that are registered and those that the process had stored when it died. */
async function newestOf(agent: WorkAgent, taskId: string): Promise<Checkpoint> {
  const registered = (await agent.interruptions.checkpoints(taskId)).at(-1);
  const stored = await agent.checkpoints.newest(taskId);
  if (stored && (registered === undefined || Date.parse(stored.at) > Date.parse(registered.at)))
    return stored;
  return registered ?? fromTheStart(taskId);
}
