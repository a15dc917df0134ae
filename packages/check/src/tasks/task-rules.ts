import { isService } from "../event-rules.ts";
import type { OpenPlan } from "../plan-book.ts";
import { checkAuthority } from "./authority.ts";
import {
  checkClosed,
  checkDerivedRequest,
  checkPromisedEnd,
  checkStep,
  openCascade,
} from "./cascade.ts";
import { linked, payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import { after, checkTimeOut } from "./deadline.ts";
import { checkOrphan } from "./orphan.ts";
import { checkRequest } from "./requests.ts";
import { checkWork } from "./stops.ts";
import { adopt, checkParent, submit } from "./submission.ts";
import { isTaskState, isTerminal, mayFollow, type TaskState } from "./table.ts";
import type { GentlePlan, Task } from "./task.ts";

/** Owed events a service may move tasks with; a plan's own event is held to its begun entry. */
const OWED: ReadonlySet<string> = new Set(["cancelled", "cancel.requested", "timed_out", "failed"]);

/** The state machine of tasks and their trees, folded from the log alone (spec 5.4, 5.5). */
export class TaskRules {
  readonly #context: TaskContext;

  constructor(context: TaskContext) {
    this.#context = context;
  }

  get total(): number {
    return this.#context.forest.total;
  }

  get live(): number {
    return this.#context.forest.live;
  }

  onBegun(event: TaskEvent, plan: OpenPlan): void {
    const { envelope } = event;
    if (!envelope.type.startsWith("task.")) return;
    const task = this.#known(event);
    if (task === undefined) return;
    const name = envelope.type.slice("task.".length);
    checkAuthority(this.#context, event, task, name);
    checkRequest(this.#context, event, task.id, name);
    if (event.owedBy !== undefined) this.#checkOwed(event, task, name);
    openCascade(this.#context, plan, task);
  }

  /** Who resumes a task has it in its own session; resumed by another, who of its owner is first (spec 5.7). */
  onResumed(event: TaskEvent): void {
    const task = this.#context.forest.get(event.tenant, event.envelope.task_id ?? "");
    if (task === undefined || isTerminal(task.state)) return;
    const isOwner = event.envelope.source === task.owner;
    task.heldIn = isOwner ? this.#context.sessions.own(event) : undefined;
    task.isFree = task.heldIn === undefined;
  }

  /** A failed obligation: the cancel request of that id need not be finished. */
  onObligationFailed(tenant: string, id: string): void {
    const plan = this.#context.forest.request(tenant, id);
    if (plan !== undefined) plan.isAbandoned = true;
  }

  /** Cancel requests whose grace has passed at `now` and whose root has not ended. */
  overdue(now: number): GentlePlan[] {
    return [...this.#context.forest.openRequests()].filter(({ due }) => due <= now);
  }

  onEvent(event: TaskEvent): void {
    const { envelope } = event;
    if (!envelope.type.startsWith("task.")) return;
    const name = envelope.type.slice("task.".length);
    this.#checkClaim(event, name);
    if (name === "submitted") {
      const id = this.#idOf(event);
      if (id !== undefined) submit(this.#context, event, id);
      return;
    }
    const task = this.#known(event);
    if (task === undefined) return;
    if (isTerminal(task.state)) {
      const message = `${name} on a task that is ${task.state}`;
      this.#context.sink.add("task-terminal", message, task.id);
      return;
    }
    checkParent(this.#context, event, task);
    if (name === "cancel.requested") this.#onCancelRequested(event, task);
    else if (isTaskState(name)) this.#move(event, task, name);
  }

  #idOf(event: TaskEvent): string | undefined {
    const id = linked(event.envelope, "task_id");
    if (id === undefined) {
      this.#context.sink.add("task-id", `${event.envelope.type} names no task`);
    }
    return id;
  }

  /** The task of the event; an unknown one is reported once and kept from there on. */
  #known(event: TaskEvent): Task | undefined {
    const id = this.#idOf(event);
    if (id === undefined) return undefined;
    const task = this.#context.forest.get(event.tenant, id);
    if (task !== undefined) return task;
    if (!this.#context.isLenient) {
      this.#context.sink.add("task-unknown", `${id} was never submitted`, id);
    }
    return adopt(this.#context, event.tenant, id);
  }

  #checkClaim(event: TaskEvent, name: string): void {
    const claim = payloadField(event.envelope, "state");
    if (claim === undefined || name === "cancel.requested" || claim === name) return;
    const message = `${event.envelope.type} claims the state ${String(claim)}`;
    this.#context.sink.add("task-state", message, linked(event.envelope, "task_id"));
  }

  #onCancelRequested(event: TaskEvent, task: Task): void {
    const { tenant, frame, envelope } = event;
    checkClosed(this.#context, event, task, "cancel.requested", false);
    if (event.owedBy !== undefined) {
      checkDerivedRequest(this.#context, event, task);
      return;
    }
    checkAuthority(this.#context, event, task, "cancel.requested");
    const grace = payloadField(envelope, "grace_period_ms");
    const graceMs = typeof grace === "number" ? grace : this.#context.settings.defaultGraceMs;
    const due = after(frame.at, graceMs);
    const { seq, subject } = frame;
    const plan = { id: envelope.id, root: task, seq, subject, due, isAbandoned: false };
    this.#context.forest.openRequest(tenant, plan);
    task.requestedBy = envelope.id;
  }

  #move(event: TaskEvent, task: Task, to: TaskState): void {
    const { sink, forest } = this.#context;
    const isEnd = isTerminal(to);
    if (task.isStateKnown && !mayFollow(task.state, to)) {
      sink.add("task-transition", `${to} after ${task.state}`, task.id);
    } else if (event.final === undefined) checkAuthority(this.#context, event, task, to);
    if (event.final === undefined) checkRequest(this.#context, event, task.id, to);
    checkWork(this.#context, event, task, to);
    checkClosed(this.#context, event, task, to, isEnd);
    if (event.owedBy !== undefined && event.final === undefined) this.#checkOwed(event, task, to);
    if (isEnd) checkPromisedEnd(this.#context, event, task);
    if (isEnd && task.liveChildren > 0) {
      const message = `${to} with ${task.liveChildren} live children`;
      sink.add("task-live-descendants", message, task.id);
    }
    task.state = to;
    task.isStateKnown = true;
    if (isEnd) {
      task.endedBy = event.envelope.id;
      forest.end(event.tenant, task, event.frame.at);
    } else this.#takeOwnership(event, task);
  }

  /** Whoever accepts or starts a task owns it (spec 5.4). */
  #takeOwnership(event: TaskEvent, task: Task): void {
    const { source } = event.envelope;
    if (event.owedBy !== undefined || isService(source)) return;
    if (task.owner !== undefined && !(task.isFree && task.owner === source)) return;
    if (task.owner === undefined) task.ownedAt = event.frame.seq;
    task.owner = source;
    task.isFree = false;
    task.heldIn = this.#context.sessions.own(event);
  }

  /** What the service does by itself: cancel by a plan, time out by a deadline, fail with a session. */
  #checkOwed(event: TaskEvent, task: Task, name: string): void {
    const { sink } = this.#context;
    if (!OWED.has(name)) {
      sink.add("owed-type", `the service moves ${task.id} to ${name} by itself`, task.id);
    } else if (name === "cancelled") checkStep(this.#context, event, task);
    else if (name === "timed_out") checkTimeOut(this.#context, event, task);
    else if (name === "failed") checkOrphan(this.#context, event, task);
  }
}
