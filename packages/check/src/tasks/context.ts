import type { Envelope } from "@harmovela/envelope";
import { type DomainEvent, payloadField } from "../domain-event.ts";
import type { FindingSink } from "../finding.ts";
import type { InterruptionView } from "../interruptions/view.ts";
import type { PlanBook } from "../plan-book.ts";
import type { Settings } from "../settings.ts";
import type { Forest } from "./forest.ts";

export { payloadField, payloadText } from "../domain-event.ts";

/** What every rule of the domain `tasks` needs. */
export interface TaskContext {
  readonly sink: FindingSink;
  readonly forest: Forest;
  readonly plans: PlanBook;
  readonly isLenient: boolean;
  readonly settings: Settings;
  readonly sessions: Sessions;
  /** What entries have seen of the log of interruptions; undefined when it is not read. */
  readonly interruptions: InterruptionView | undefined;
}

/** What sessions say about who has a task. */
export interface Sessions {
  /** The session in which an event is sent, when it is live and the sender's own. */
  own(event: TaskEvent): Instance | undefined;
}

/**
 * A session in which its agent has taken something. Not told by its id alone, which may be used again
 * when its end is forgotten.
 */
export interface Instance {
  readonly id: string;
  readonly state: "opened" | "ready" | "closed" | "error";
  readonly endedAt: number | undefined;
  /** Id of the event by which it ended. */
  readonly endedBy: string | undefined;
  /** Id of the event by which it was lost. */
  readonly lostBy: string | undefined;
}

/** Whether a session is live and the event is sent in another one, or in none. */
export function isElsewhere(
  { envelope }: TaskEvent,
  instance: Instance | undefined,
): instance is Instance {
  return (
    instance !== undefined && instance.endedAt === undefined && instance.id !== envelope.session_id
  );
}

/** An event of this domain. */
export type TaskEvent = DomainEvent;

/** A text field of the envelope, else of the payload (spec 5.5). */
export function linked(envelope: Envelope, name: "task_id" | "parent_task_id"): string | undefined {
  const own = envelope[name];
  if (own !== undefined) return own;
  const inPayload = payloadField(envelope, name);
  return typeof inPayload === "string" ? inPayload : undefined;
}
