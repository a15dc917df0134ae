/** Entries of the log of `interruptions`, as its service writes them. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import type { World } from "./support.ts";

export const MANAGER = DEFAULT_TASK_SETTINGS.interruptionManager;
export const WORKER = "agent:worker";
export const BOSS = "agent:boss";

let made = 0;

interface Fields {
  id?: string;
  by?: string;
  cause?: string;
  policy?: string;
  checkpoint?: string;
  session?: string;
  payload?: JsonObject;
  more?: Partial<Envelope>;
}

/** `interruption.<name>` of one task; by its worker unless told. */
export function inter(name: string, task: string, fields: Fields = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: fields.id ?? `evt_int_${made}`,
    type: `interruption.${name}`,
    source: fields.by ?? WORKER,
    created_at: "2026-11-30T10:00:00Z",
    task_id: task,
    ...(fields.cause === undefined ? {} : { causation_id: fields.cause }),
    ...(fields.policy === undefined ? {} : { interruption_policy: fields.policy as never }),
    ...(fields.checkpoint === undefined ? {} : { checkpoint_id: fields.checkpoint }),
    ...(fields.session === undefined ? {} : { session_id: fields.session }),
    payload: { task_id: task, ...fields.payload },
    ...fields.more,
  };
}

/** What the interruption manager asks for. */
export function request(name: string, task: string, cause: string, more: Partial<Envelope> = {}) {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_ask_${made}`,
    type: `task.${name}`,
    source: MANAGER,
    created_at: "2026-11-30T10:00:00Z",
    task_id: task,
    causation_id: cause,
    payload: { task_id: task },
    ...more,
  } satisfies Envelope;
}

export function see(scenario: World, ...envelopes: Envelope[]): World {
  for (const envelope of envelopes) scenario.observe("interruptions", envelope);
  return scenario;
}

/** Requested by the boss, acknowledged and saved by the worker. */
export function saved(task: string, checkpoint = `ck_${task}`): Envelope[] {
  return [
    inter("requested", task, { by: BOSS, id: `int_${task}`, policy: "save_and_stop" }),
    inter("acknowledged", task),
    inter("saved", task, { checkpoint }),
  ];
}

/** Stopped at once. */
export function forced(task: string): Envelope {
  return inter("requested", task, { by: BOSS, id: `force_${task}`, policy: "force_stop" });
}

/** The grace of `int_<task>` has passed; the manager's own entry. */
export function expire(
  scenario: World,
  task: string,
  { id = `exp_${task}`, onGraceExpired = "fail" }: { id?: string; onGraceExpired?: string } = {},
): World {
  const payload = {
    reason: "no checkpoint within the grace period",
    grace_period_ms: 0,
    expired: true,
    on_grace_expired: onGraceExpired,
  };
  const fields = { by: MANAGER, id, cause: `int_${task}`, policy: "force_stop", payload };
  return scenario.observe("interruptions", inter("requested", task, fields), { owed: id });
}

/** A resumption was refused for want of its checkpoint. */
export function missing(task: string, id: string, checkpoint = "ck_none"): Envelope {
  const details = { task_id: task, checkpoint_id: checkpoint, known: [] };
  const error = { code: "checkpoint_missing", message: "none", retryable: false, details };
  return {
    ...inter("rejected", task, { by: MANAGER, id }),
    type: "event.rejected",
    payload: { acknowledged_event_id: "evt_resume", error },
  };
}

/** `compensation.<name>` of a task that undoes another one. */
export function undo(name: string, task: string, fields: Fields & { of?: string } = {}): Envelope {
  const { of = "original", by = BOSS, ...rest } = fields;
  const envelope = inter("", task, { by, ...rest });
  return {
    ...envelope,
    type: `compensation.${name}`,
    compensation_id: of,
    payload: { task_id: task, reason: "undo", description: "undo it", ...rest.payload },
  };
}
