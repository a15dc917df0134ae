import type { Domain } from "@harmovela/envelope";
import type { DomainEvent } from "./domain-event.ts";
import type { Frame } from "./frame.ts";
import type { OpenPlan } from "./plan-book.ts";
import type { RuleId } from "./rules-table.ts";

/** What the log of a domain at rest should hold and does not. */
export interface Missing {
  rule: RuleId;
  /** Of the entry that nothing has followed. */
  seq: number;
  subject: string;
  message: string;
  taskId?: string;
}

/** The rules of one domain, told entry by entry what its log holds. */
export interface DomainRules {
  /** What an `epoch` entry records. */
  settings(recorded: unknown): void;
  onEvent(event: DomainEvent): void;
  /** An event of the service that refuses another. */
  onRefusal?(event: DomainEvent): void;
  onBegun(event: DomainEvent, plan: OpenPlan): void;
  onTokenIssued?(tenant: string, frame: Frame, body: Record<string, unknown>): void;
  /** How far observed logs are folded, and where they begin. */
  onObserved?(body: Record<string, unknown>): void;
  onObligationFailed(tenant: string, id: string): void;
  /** An event of another log, which the entries from here on have seen. */
  observe?(domain: Domain, event: DomainEvent): void;
  missing(now: number): Iterable<Missing>;
}
