/** The logs of tasks and of interruptions, written together: each entry has seen the other log so far. */
import { type CheckOptions, checkLogs, type Report } from "../src/index.ts";
import { type Draft, LogBuilder, streamOf } from "./log-builder.ts";

export const MANAGER = "service:interruption-manager";
export const WORKER = "agent:worker";
export const BOSS = "agent:boss";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

export class TwoLogs {
  readonly tasks = new LogBuilder("tasks");
  readonly stops = new LogBuilder("interruptions");

  constructor() {
    this.tasks.seen = () => `interruptions:${this.stops.last}`;
    this.stops.seen = () => `tasks:${this.tasks.last}`;
  }

  wait(ms: number): void {
    this.tasks.wait(ms);
    this.stops.wait(ms);
  }

  /** Settings that the manager records from here on. */
  settings(recorded: Record<string, unknown>): void {
    this.stops.epoch(recorded);
  }

  /** An `interruption.<name>` of an agent. */
  say(name: string, id: string, source: string, fields: Fields = {}): Draft {
    return this.stops.send(`interruption.${name}`, source, { task_id: id, ...fields });
  }

  /** A `interruption.<name>` of the service. */
  owe(cause: string, name: string, id: string, fields: Fields = {}): Draft {
    const own = { source: MANAGER, task_id: id, ...fields };
    return this.stops.owe(cause, `interruption.${name}`, own);
  }

  interrupt(id: string, policy = "save_and_stop", fields: Fields = {}): Draft {
    return this.say("requested", id, BOSS, { interruption_policy: policy, ...fields });
  }

  acknowledge(id: string, fields: Fields = {}): Draft {
    return this.say("acknowledged", id, WORKER, fields);
  }

  save(id: string, checkpoint = `ck_${id}`, fields: Fields = {}): Draft {
    const stamps = { checkpoint_id: checkpoint, checkpoint_at: "2026-11-30T10:00:00Z" };
    return this.say("saved", id, WORKER, { ...stamps, ...fields });
  }

  resume(id: string, checkpoint = `ck_${id}`, fields: Fields = {}): Draft {
    return this.say("resumed", id, BOSS, { checkpoint_id: checkpoint, ...fields });
  }

  cancel(id: string, fields: Fields = {}): Draft {
    return this.say("cancelled", id, BOSS, { payload: { reason: "enough" }, ...fields });
  }

  /** A task at work, interrupted. */
  interrupted(id: string, policy = "save_and_stop", fields: Fields = {}): Draft {
    this.tasks.running(id);
    return this.interrupt(id, policy, fields);
  }

  /** A task at work that was stopped, from a checkpoint `ck_<id>`. */
  saved(id: string): Draft {
    const requested = this.interrupted(id);
    this.acknowledge(id);
    this.save(id);
    return requested;
  }

  /** The grace of an interruption has passed. */
  expire(requested: Draft, fields: Fields = {}): Draft {
    const { payload, ...rest } = fields;
    const reason = "no checkpoint within the grace period";
    return this.owe(`grace:${requested.id}`, "requested", String(requested.task_id), {
      interruption_policy: "force_stop",
      causation_id: requested.id,
      payload: { reason, grace_period_ms: 0, expired: true, ...payload },
      ...rest,
    });
  }

  /** The task has ended, and its interruption with it. */
  closeWith(end: Draft, fields: Fields = {}): Draft {
    const id = String(end.task_id);
    return this.owe(`closed:${id}`, "cancelled", id, {
      causation_id: end.id,
      payload: { reason: "the task has ended" },
      ...fields,
    });
  }

  /** The manager asks for a `task.<name>`, and the coordinator has accepted it. */
  ask(name: string, id: string, cause: Draft, fields: Fields = {}): Draft {
    const own = { id: this.tasks.derivedId(), task_id: id, causation_id: cause.id };
    return this.tasks.send(`task.${name}`, MANAGER, { ...own, ...fields });
  }

  fail(id: string, cause: Draft, code: string): Draft {
    const error = { code, message: "stopped", retryable: code === "interruption_timeout" };
    return this.ask("failed", id, cause, { payload: { error } });
  }

  /** A resume that names a checkpoint which nobody knows is refused. */
  refuseResume(id: string): Draft {
    const error = { code: "checkpoint_missing", message: "no such checkpoint", retryable: false };
    return this.stops.refuse("evt_refused", {
      source: MANAGER,
      task_id: id,
      target: BOSS,
      payload: { acknowledged_event_id: "evt_refused", error },
    });
  }

  compensate(id: string, original: string, fields: Fields = {}): Draft {
    const { payload, source = BOSS, ...rest } = fields;
    const texts = { reason: "rollback", description: "undo it" };
    return this.stops.send("compensation.requested", String(source), {
      task_id: id,
      compensation_id: original,
      payload: { ...texts, ...payload },
      ...rest,
    });
  }

  compensated(id: string, original: string, source = WORKER): Draft {
    const fields = { task_id: id, compensation_id: original };
    return this.stops.send("compensation.completed", source, fields);
  }

  /** A compensation whose task was made. */
  compensating(id: string, original: string): Draft {
    const asked = this.compensate(id, original);
    this.ask("submitted", id, asked, { compensation_id: original });
    return asked;
  }

  async check(
    options: Pick<CheckOptions, "settled"> = {},
  ): Promise<{ tasks: Report; stops: Report }> {
    const logs = [this.tasks, this.stops].map((log) => {
      const { domain } = log;
      return { domain, stream: streamOf(domain), read: () => log.records() };
    });
    const reports = await checkLogs(logs, options);
    const [tasks, stops] = [reports.get("tasks"), reports.get("interruptions")];
    if (tasks === undefined || stops === undefined) throw new Error("a log was not checked");
    return { tasks, stops };
  }
}
