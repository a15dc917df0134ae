import type { Envelope } from "@harmovela/envelope";
import { type DomainEvent, payloadField } from "../domain-event.ts";
import type { FindingSink } from "../finding.ts";
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
