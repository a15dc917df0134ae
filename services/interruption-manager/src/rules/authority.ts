/** Who may interrupt, answer and undo (spec 5.7, 5.8). */
import { type Envelope, isHarness, isService } from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import type { ManagerSettings } from "../settings.ts";
import type { TaskRecord } from "../state.ts";
import { isElsewhere } from "../tasks/instances.ts";

/** What speaks for the runtime; with authentication only services do. */
function isRuntime(source: string): boolean {
  return isService(source) || isUnprovenRuntime(source);
}

export function isUnprovenRuntime(source: string): boolean {
  return isHarness(source) || source.startsWith("runtime:");
}

/** An agent as any other where senders are proved; elsewhere it may ask for what a runtime may. */
function isTrustedOrchestrator(source: string, { authenticated }: Proving): boolean {
  return !authenticated && source.startsWith("orchestrator:");
}

type Proving = Pick<ManagerSettings, "authenticated">;

/** Owner, target, submitter or delegator of the task or of an ancestor, or the runtime; of an external task anybody. */
function mayRequest(task: TaskRecord, source: string, proving: Proving): boolean {
  if (task.isExternal || isRuntime(source) || isTrustedOrchestrator(source, proving)) return true;
  for (let at: TaskRecord | undefined = task; at; at = at.parent) {
    const { owner, target, submitter, offer } = at;
    if (source === owner || source === submitter) return true;
    if (source === offer?.delegatedBy || source === offer?.owner) return true;
    if (source === target && !isOffered(at)) return true;
  }
  return false;
}

/** An offer that nobody accepted gives no rights over the task. */
function isOffered({ offer, owner }: TaskRecord): boolean {
  return owner === undefined && (offer?.state === "requested" || offer?.state === "escalated");
}

/** Whether the sender has the task: its owner; before anybody took it, who might or who submitted it. */
export function isHolder(task: TaskRecord, source: string): boolean {
  const { owner, submitter, target } = task;
  if (task.isExternal) return true;
  if (owner !== undefined) return source === owner;
  return source === submitter || (source === target && !isOffered(task));
}

/**
 * Only who runs the task says that it stops and what it saved; of several processes of one name the
 * one that has it, as in the domain `tasks`.
 */
export function answerRefusal(task: TaskRecord, envelope: Envelope): ErrorPayload | undefined {
  const { type, source, session_id } = envelope;
  if (!isHolder(task, source)) return stranger(task, type, source);
  const { instance, id } = task;
  if (!isElsewhere(instance, session_id)) return undefined;
  const details = { task_id: id, owner: source, session_id: instance.session };
  return reject("unauthorized", `${source} has task ${id} in another session`, details);
}

/** Whoever may request, and the owner wherever it speaks. */
export function requestRefusal(
  task: TaskRecord,
  { type, source }: Envelope,
  proving: Proving,
): ErrorPayload | undefined {
  return mayRequest(task, source, proving) ? undefined : stranger(task, type, source);
}

export function stranger(task: TaskRecord, type: string, source: string): ErrorPayload {
  const { id, owner, target } = task;
  return reject("unauthorized", `${source} may not send ${type} for task ${id}`, {
    task_id: id,
    ...(owner === undefined ? {} : { owner }),
    ...(target === undefined ? {} : { target }),
  });
}
