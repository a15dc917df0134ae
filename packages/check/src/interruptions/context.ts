import type { DomainEvent } from "../domain-event.ts";
import type { FindingSink } from "../finding.ts";
import type { PlanBook } from "../plan-book.ts";
import type { Settings } from "../settings.ts";
import type { Task } from "../tasks/task.ts";
import type { TaskView } from "../tasks/view.ts";
import { TenantBook } from "./book.ts";

/** What every rule of the domain `interruptions` needs. */
export interface InterruptionContext {
  readonly sink: FindingSink;
  readonly plans: PlanBook;
  readonly isLenient: boolean;
  readonly settings: Settings;
  /** What entries have seen of the log of tasks; undefined when it is not read. */
  readonly tasks: TaskView | undefined;
  readonly books: Map<string, TenantBook>;
}

/** Interruptions and compensations are a tenant's own (spec 9.9). */
export function bookOf({ books }: InterruptionContext, tenant: string): TenantBook {
  let book = books.get(tenant);
  if (book === undefined) {
    book = new TenantBook();
    books.set(tenant, book);
  }
  return book;
}

/** The task as the entry at hand has seen it; undefined when it is unknown, or nobody can say. */
export function taskOf(
  { tasks }: InterruptionContext,
  { tenant }: DomainEvent,
  id: string,
): Task | undefined {
  return tasks?.task(tenant, id);
}
