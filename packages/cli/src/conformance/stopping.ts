/** What follows at once from a legal line about interruptions and compensations, tried entry by entry (spec 5.7, 5.8). */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type FixtureLog, owedBy } from "./fixture-log.ts";
import { textIn } from "./follow-ups.ts";

const MANAGER = "service:interruption-manager";

export interface StoppingLogs {
  tasks: FixtureLog;
  stops: FixtureLog;
  /** Ids of all tasks; children come before their parents. */
  taskIds(): readonly string[];
  /** Something that the manager asks of tasks; nothing happens when it breaks a rule. */
  ask(request: Envelope): void;
}

/** Whether the whole subtree is to stop. */
export function isTreeRequest(envelope: Envelope): boolean {
  return envelope.type === "interruption.requested" && isOfTree(envelope);
}

export class Stopping {
  readonly #logs: StoppingLogs;
  /** What was saved last, by task. */
  readonly #checkpoints = new Map<string, string>();

  constructor(logs: StoppingLogs) {
    this.#logs = logs;
  }

  /** As a plan that interrupts the tasks below first; false when it breaks a rule. */
  acceptTree(envelope: Envelope, cause: string): boolean {
    const { stops, taskIds } = this.#logs;
    if (stops.add({ cause, begun: envelope }).length > 0) return false;
    const { interruption_policy } = envelope;
    for (const id of taskIds()) {
      this.#owe(envelope.id, "interruption.requested", id, { interruption_policy });
    }
    return stops.add({ cause: owedBy(envelope.id), envelope }).length === 0;
  }

  /** What the service does because of a legal line. */
  follow(envelope: Envelope): void {
    const { type, task_id: id, checkpoint_id: checkpoint } = envelope;
    if (type === "interruption.saved" && id !== undefined && checkpoint !== undefined) {
      this.#checkpoints.set(id, checkpoint);
    } else if (type === "interruption.requested") this.#expire(envelope);
    else if (type === "interruption.resumed" && isOfTree(envelope)) this.#resumeBelow(envelope);
    else if (type === "interruption.cancelled") this.#ask("cancelled", envelope, {});
    else if (type === "session.closed") this.#interruptWith(envelope);
    else if (type === "compensation.requested") this.#submit(envelope);
    else if (type === "compensation.completed") this.#ask("completed", envelope, {});
  }

  /** The refusal `id` of a resume that names nothing of its task: that fails. */
  failMissing(resumed: Envelope, id: string): void {
    const error = { code: "checkpoint_missing", message: "no such checkpoint", retryable: false };
    this.#ask("failed", { ...resumed, id }, { payload: { error } });
  }

  /** A grace of nothing has passed at once. */
  #expire(requested: Envelope): void {
    const { id, task_id = "" } = requested;
    const payload = { expired: true, grace_period_ms: 0 };
    const expiry = { interruption_policy: "force_stop", payload } as const;
    if (!this.#owe(id, "interruption.requested", task_id, expiry)) return;
    const expired = this.#logs.stops.idOf(id, `interruption.requested:${task_id}`);
    const error = { code: "interruption_timeout", message: "nothing saved", retryable: true };
    this.#ask("failed", { ...requested, id: expired }, { payload: { error } });
  }

  /** A `task.<name>` that follows from an event of the task. */
  #ask(name: string, cause: Envelope, more: Partial<Envelope>): void {
    const { tasks, ask } = this.#logs;
    const { id, task_id, target, created_at, spec_version } = cause;
    ask({
      spec_version,
      id: tasks.idOf(id, name),
      type: `task.${name}`,
      source: MANAGER,
      ...(target === undefined ? {} : { target }),
      created_at,
      ...(task_id === undefined ? {} : { task_id }),
      causation_id: id,
      payload: {},
      ...more,
    });
  }

  #resumeBelow({ id }: Envelope): void {
    for (const task of [...this.#logs.taskIds()].reverse()) {
      const checkpoint_id = this.#checkpoints.get(task);
      if (checkpoint_id !== undefined) {
        this.#owe(id, "interruption.resumed", task, { checkpoint_id });
      }
    }
  }

  #interruptWith({ id }: Envelope): void {
    const interruption_policy = "save_and_stop";
    for (const task of this.#logs.taskIds()) {
      this.#owe(id, "interruption.requested", task, { interruption_policy });
    }
  }

  /** Whether it breaks no rule. */
  #owe(of: string, type: string, task_id: string, more: Partial<Envelope>): boolean {
    const { stops } = this.#logs;
    const event = { type, task_id, causation_id: of, payload: {}, ...more };
    return stops.owe(of, `${type}:${task_id}`, event).length === 0;
  }

  /** The task that undoes another one; it has timed out where its deadline has passed. */
  #submit(asked: Envelope): void {
    const { tasks } = this.#logs;
    const { id, task_id, compensation_id } = asked;
    const isLate = tasks.isPast(textIn(asked.payload, "deadline"));
    this.#ask("submitted", asked, {
      ...(compensation_id === undefined ? {} : { compensation_id }),
      payload: isLate ? { timeout_ms: 0 } : {},
    });
    const error: JsonObject = { code: "task_timeout", message: "too late", retryable: true };
    const timedOut = { type: "task.timed_out", ...(task_id === undefined ? {} : { task_id }) };
    tasks.owe(id, "timed_out", { ...timedOut, payload: { error } });
  }
}

function isOfTree({ payload }: Envelope): boolean {
  return textIn(payload, "scope") === "tree";
}
