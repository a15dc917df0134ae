/**
 * The log of `interruptions` of a simulated world, written by a hand that knows its rules: what it
 * says of a task is what its service could have said, at any moment. It asks the coordinator for what follows.
 */
import {
  type Bus,
  controlSubject,
  encodeControlBody,
  encodeFrame,
  logSubject,
  NO_TENANT,
} from "@harmovela/bus";
import { DEFAULT_TASK_SETTINGS } from "@harmovela/delegation-coordinator";
import type { Cause, Envelope, EventEntry, LogEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { Draft, SpeaksIn } from "./drafts.ts";
import type { SeenTask, View } from "./view.ts";

const MANAGER = DEFAULT_TASK_SETTINGS.interruptionManager;
const POLICIES = ["save_and_stop", "save_and_stop", "drain_then_stop", "force_stop"] as const;
const AGAIN_CHANCE = 0.3;

export interface InterruptionParts {
  random: SimRandom;
  view: View;
  /** Loses nothing: its log is not the one under test. */
  bus: Bus;
  now(): number;
  send(draft: Draft): void;
  speaksIn: SpeaksIn;
}

interface Open {
  id: string;
  isStopped: boolean;
}

interface Words {
  type: string;
  source: string;
  cause?: string;
  isDerived?: boolean;
  payload?: JsonObject;
  more?: Partial<Envelope>;
}

export class Interruptions {
  readonly #parts: InterruptionParts;
  /** By position, from 1. */
  readonly #entries: LogEntry[] = [];
  readonly #open = new Map<string, Open>();
  #ids = 0;
  /** Requests of the manager that were sent. */
  asked = 0;

  constructor(parts: InterruptionParts) {
    this.#parts = parts;
  }

  get last(): number {
    return this.#entries.length;
  }

  /** Entries after one position up to another. */
  between(after: number, upTo: number): LogEntry[] {
    return this.#entries.slice(after, upTo);
  }

  /** Says the next thing about a task, where there is one. */
  next(): void {
    const { random, view } = this.#parts;
    const { live } = view;
    const task = live.length === 0 ? undefined : random.pick(live);
    if (task === undefined) return;
    if (this.#entries.length === 0) this.#begin();
    if (random.chance(0.1)) this.#undo(task);
    const key = `${task.tenant} ${task.id}`;
    const open = this.#open.get(key);
    if (open === undefined) this.#interrupt(task, key);
    else if (open.isStopped) this.#goOn(task, key, open);
    else this.#stop(task, key, open);
  }

  #interrupt(task: SeenTask, key: string): void {
    const policy = this.#parts.random.pick([...POLICIES]);
    const more = { interruption_policy: policy };
    const source = task.submitter;
    const { id } = this.#say(task, { type: "interruption.requested", source, more });
    this.#open.set(key, { id, isStopped: policy === "force_stop" });
    if (policy !== "force_stop") {
      this.#say(task, { type: "interruption.acknowledged", source: task.owner ?? source });
    }
  }

  #stop(task: SeenTask, key: string, open: Open): void {
    const { random } = this.#parts;
    open.isStopped = true;
    if (random.chance(0.6)) {
      const more = { checkpoint_id: `ck_${open.id}` };
      this.#say(task, { type: "interruption.saved", source: task.owner ?? task.submitter, more });
    } else if (random.chance(0.5)) this.#cancel(task, key);
    else {
      const { id } = this.#say(task, {
        type: "interruption.requested",
        source: MANAGER,
        cause: open.id,
        isDerived: true,
        payload: { expired: true, grace_period_ms: 0 },
        more: { interruption_policy: "force_stop" },
      });
      if (random.chance(0.7)) this.#ask(task, "failed", id);
    }
  }

  #goOn(task: SeenTask, key: string, { id }: Open): void {
    const { random } = this.#parts;
    if (random.chance(0.2)) this.#cancel(task, key);
    else if (random.chance(0.15)) this.#miss(task);
    else this.#resume(task, key, id);
  }

  #resume(task: SeenTask, key: string, id: string): void {
    const { random, speaksIn } = this.#parts;
    const source = random.chance(0.6) ? (task.owner ?? task.submitter) : task.submitter;
    const session = speaksIn(task.tenant, source);
    const more: Partial<Envelope> = { checkpoint_id: `ck_${id}` };
    if (session !== undefined) more.session_id = session;
    this.#say(task, { type: "interruption.resumed", source, more });
    this.#open.delete(key);
  }

  #cancel(task: SeenTask, key: string): void {
    const source = task.submitter;
    const { id } = this.#say(task, { type: "interruption.cancelled", source });
    this.#open.delete(key);
    this.#ask(task, "cancelled", id);
  }

  #miss(task: SeenTask): void {
    const details = { task_id: task.id };
    const error = { code: "checkpoint_missing", message: "none", retryable: false, details };
    const payload = { acknowledged_event_id: `evt_resume_${this.#ids}`, error };
    const { id } = this.#say(task, { type: "event.rejected", source: MANAGER, payload });
    this.#ask(task, "failed", id);
  }

  #undo({ tenant, submitter }: SeenTask): void {
    const task = { tenant, id: `undo_${this.#ids}` };
    const more = { compensation_id: "original" };
    const { id } = this.#say(task, { type: "compensation.requested", source: submitter, more });
    const submit = (source: string): Draft => this.#draft(task, "submitted", source, id, more);
    const both = [submit(MANAGER), submit(submitter)];
    for (const draft of this.#parts.random.chance(0.5) ? both : both.toReversed()) {
      this.#parts.send(draft);
    }
    this.asked += 1;
  }

  /** Once, or again under another id as after a retryable refusal. */
  #ask(task: SeenTask, verb: string, cause: string): void {
    const { random, send } = this.#parts;
    do {
      this.asked += 1;
      send(this.#draft(task, verb, MANAGER, cause, {}));
    } while (random.chance(AGAIN_CHANCE));
  }

  #draft(
    { tenant, id }: Pick<SeenTask, "tenant" | "id">,
    verb: string,
    source: string,
    cause: string,
    more: Partial<Envelope>,
  ): Draft {
    this.#ids += 1;
    const envelope: Partial<Envelope> = {
      spec_version: "0.2",
      id: `asked_${this.#ids}`,
      type: `task.${verb}`,
      source,
      created_at: "2026-11-30T10:00:00Z",
      task_id: id,
      causation_id: cause,
      ...more,
      payload: {
        task_id: id,
        ...(verb === "failed"
          ? { error: { code: "interruption_timeout", message: "late", retryable: true } }
          : {}),
      },
    };
    return { tenant, envelope, wants: "verdict" };
  }

  #begin(): void {
    const seq = 1;
    const frame = { seq, tenant: NO_TENANT, cause: { in: 0 }, at: this.#parts.now(), epoch: seq };
    const body = { epoch: seq, instance: "scribe" };
    const entry: LogEntry = { kind: "epoch", ...frame, prev: 0, seen: {}, body };
    const subject = controlSubject(undefined, "interruptions", "epoch");
    this.#write(entry, subject, encodeControlBody(entry));
  }

  #say(
    { tenant, id: task }: Pick<SeenTask, "tenant" | "id">,
    { type, source, cause, isDerived = false, payload = {}, more = {} }: Words,
  ): { id: string } {
    this.#ids += 1;
    const seq = this.last + 1;
    const id = `evt_int_${this.#ids}`;
    const envelope: Envelope = {
      spec_version: "0.2",
      id,
      type,
      source,
      created_at: "2026-11-30T10:00:00Z",
      task_id: task,
      ...(cause === undefined ? {} : { causation_id: cause }),
      ...more,
      payload: { task_id: task, ...payload },
    };
    const because: Cause = isDerived ? { owed: id } : { in: seq };
    const frame = { seq, tenant, cause: because, at: this.#parts.now(), epoch: 1, prev: seq - 1 };
    const entry: EventEntry = { kind: "event", ...frame, seen: {}, envelope };
    const { target } = envelope;
    const subject = logSubject({ tenant, domain: "interruptions", source, target, type });
    this.#write(entry, subject, Buffer.from(JSON.stringify(envelope)));
    return { id };
  }

  #write(entry: LogEntry, subject: string, data: Uint8Array): void {
    this.#entries.push(entry);
    this.#parts.bus.publish(subject, encodeFrame(entry), data);
  }
}
