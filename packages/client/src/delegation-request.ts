/** What a delegator says when it offers work (spec 5.6). */
import { type Envelope, newEventId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Draft } from "./draft.ts";

/** What is to be done: a sentence, or a sentence and what belongs to it. */
export type Work =
  | string
  | {
      description?: string;
      /** For the worker: whatever the work needs. */
      context?: JsonObject;
      priority?: "low" | "normal" | "high" | "critical";
      /** Further fields of the payload. */
      payload?: JsonObject;
    };

export interface DelegateOptions {
  /** Id of the task below which the work stands; without one it stands by itself. */
  parent?: string;
  /** Until when it must be accepted, and the work be done. */
  deadline?: Date | string;
  /** The same key under the same parent never makes two tasks, however often it is asked for. */
  key?: string;
  /**
   * How often the work is given out again, as a new task, when its worker was lost: it failed with
   * `session_timeout`. Default 0: never.
   */
  again?: number;
  /** Default a fresh id; a task that there is already is handed on by its owner. */
  task_id?: string;
  /** Whether the handoff is completed as soon as the offer is accepted. Default true. */
  handoff?: boolean;
  /** How long the handoff's token is good for, milliseconds. Default: as the service has it. */
  tokenTtlMs?: number;
  /** Further fields of the envelope. */
  envelope?: Partial<Envelope>;
}

/** The payload field by which a delegator promises a handoff, so that the work need not begin before it. */
export const HANDOFF_FIELD = "handoff";
export const HANDOFF_FOLLOWS = "follows";

export interface Parties {
  taskId: string;
  parentId: string | undefined;
  by: string;
  to: string;
}

/** Throws `invalid_argument` for work that says nothing, and for a deadline that is no time. */
export function toRequest(
  parties: Parties,
  work: Work,
  { deadline, key, envelope }: DelegateOptions,
  isHandoffPromised: boolean,
): Draft {
  const { description, context, priority, payload } =
    typeof work === "string" ? { description: work } : describedBy(work);
  const body: JsonObject = { ...payload };
  if (description !== undefined) body.work_description = description;
  if (context !== undefined) body.context = context;
  if (priority !== undefined) body.priority = priority;
  if (key !== undefined) body.key = key;
  if (deadline !== undefined) body.deadline = toInstantText(deadline);
  if (isHandoffPromised) body[HANDOFF_FIELD] = HANDOFF_FOLLOWS;
  return toDelegationEvent("delegation.requested", parties, { ...envelope, payload: body });
}

/** An event of a delegation that names its parties and tasks in full, as profiles demand (spec 4.2). */
export function toDelegationEvent(
  type: string,
  { taskId, parentId, by, to }: Parties,
  more: Partial<Envelope>,
): Draft {
  const parent = parentId === undefined ? {} : { parent_task_id: parentId };
  const payload = { ...(more.payload as JsonObject | undefined), task_id: taskId };
  return {
    id: newEventId(),
    ...more,
    type,
    task_id: taskId,
    ...parent,
    delegated_by: by,
    delegated_to: to,
    payload: parentId === undefined ? payload : { ...payload, parent_task_id: parentId },
  };
}

/** Who has no types to go by is told what is wrong. */
function describedBy(work: Exclude<Work, string>): Exclude<Work, string> {
  if (typeof work === "object" && work !== null && !Array.isArray(work)) return work;
  throw new HarmovelaError("invalid_argument", "the work is neither a text nor an object");
}

function toInstantText(deadline: Date | string): string {
  if (typeof deadline === "string") return deadline;
  if (Number.isNaN(deadline.getTime()))
    throw new HarmovelaError("invalid_argument", "the deadline is no time");
  return deadline.toISOString();
}
