import type { DomainEvent } from "../domain-event.ts";
import type { Instance } from "./context.ts";
import type { Task } from "./task.ts";

/** What the log of tasks says, as far as it was read. */
export interface TaskView {
  /** Its beginning was not read. */
  readonly isLenient: boolean;
  tenants(): Iterable<string>;
  task(tenant: string, id: string): Task | undefined;
  tasks(tenant: string): Iterable<Task>;
  /** The session in which an event is sent, when it is live and the sender's own. */
  ownSession(event: DomainEvent): Instance | undefined;
  /** From now on a task is whose who resumes it, though its own log has not seen that yet. */
  resume(event: DomainEvent): void;
  hasEnded(tenant: string, sessionId: string): boolean;
  /** Those in force for an event (spec 4.2). */
  profiles(event: DomainEvent): readonly string[];
}
