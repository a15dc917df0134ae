import { isHarness } from "@harmovela/envelope";
import type { Frame } from "../frame.ts";
import { checkOpen } from "../tasks/closed.ts";
import { linked, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { checkParent } from "../tasks/submission.ts";
import { isTerminal } from "../tasks/table.ts";
import { applyAnswer, checkAnswer } from "./answer.ts";
import { DelegationBook } from "./book.ts";
import type { Delegation } from "./delegation.ts";
import { checkExpiry } from "./expiry.ts";
import { request } from "./request.ts";
import { checkIssue, checkProof } from "./tokens.ts";

/** Offers, their answers and handoffs, folded from the log alone (spec 5.6, 7). */
export class DelegationRules {
  readonly #context: TaskContext;
  readonly #book = new DelegationBook();

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** `profiles`: those in force for the event. An echo of the runtime changes nothing. */
  onEvent(event: TaskEvent, profiles: readonly string[]): void {
    const { envelope, owedBy } = event;
    if (!envelope.type.startsWith("delegation.")) return;
    if (owedBy === undefined && isHarness(envelope.source)) return;
    const id = linked(envelope, "task_id");
    if (id === undefined) {
      this.#context.sink.add("task-id", `${envelope.type} names no task`);
      return;
    }
    const name = envelope.type.slice("delegation.".length);
    if (name === "requested") request(this.#context, this.#book, event, id);
    else this.#answer(event, id, name, profiles);
  }

  onTokenIssued(tenant: string, frame: Frame, body: Record<string, unknown>): void {
    checkIssue(this.#context, this.#book, { tenant, frame, body });
  }

  /** The task is forgotten, and its delegation with it. */
  forgetTask(tenant: string, id: string): void {
    this.#book.forgetTask(tenant, id);
  }

  /** Offers that were over before a time. */
  forget(before: number): void {
    const { forest } = this.#context;
    this.#book.forget(before, (tenant, id) => forest.get(tenant, id) !== undefined);
  }

  #answer(event: TaskEvent, id: string, name: string, profiles: readonly string[]): void {
    const delegation = this.#known(event, id);
    if (delegation === undefined) {
      this.#reportUnknown(event, id, name);
      return;
    }
    const { task } = delegation;
    if (task !== undefined) {
      if (isTerminal(task.state)) {
        this.#context.sink.add("task-terminal", `${name} on a task that is ${task.state}`, id);
        return;
      }
      checkOpen(this.#context, event, task);
      checkParent(this.#context, event, task);
    }
    if (!checkAnswer(this.#context, event, delegation, name)) return;
    if (event.owedBy !== undefined) checkExpiry(this.#context, event, delegation);
    if (name === "handoff.completed") {
      checkProof(this.#context, this.#book.tokens, event, delegation, profiles);
    }
    applyAnswer(this.#context, this.#book.tokens, event, delegation, name);
    if (name === "rejected") this.#book.isOver(event.tenant, delegation, event.frame.at);
  }

  #reportUnknown(event: TaskEvent, id: string, name: string): void {
    const task = this.#context.forest.get(event.tenant, id);
    const hasEnded = task !== undefined && isTerminal(task.state);
    const rule = hasEnded ? "task-terminal" : "delegation-unknown";
    this.#context.sink.add(rule, `${name} of ${id}, which nobody offered`, id);
  }

  /** The delegation of the event; in a log read from its middle one that nobody saw begin. */
  #known(event: TaskEvent, id: string): Delegation | undefined {
    const { tenant, envelope, frame } = event;
    const known = this.#book.get(tenant, id);
    if (known !== undefined || !this.#context.isLenient) return known;
    const task = this.#context.forest.get(tenant, id);
    const by = envelope.delegated_by ?? envelope.source;
    const adopted: Delegation = {
      id,
      task,
      state: "requested",
      delegatedBy: by,
      delegatedTo: envelope.delegated_to,
      owner: task?.owner ?? by,
      acceptedIn: undefined,
      key: undefined,
      at: frame.at,
      deadline: undefined,
      hasTaken: false,
      targetBefore: undefined,
      retryAfter: undefined,
      isAdopted: true,
      issued: [],
    };
    this.#book.set(tenant, adopted);
    return adopted;
  }
}
