import type { DomainEntry, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type Given, type GivenOptions, given } from "@harmovela/testkit";
import { createTaskDecider, DEFAULT_TASK_SETTINGS, type TaskSettings } from "../src/index.ts";
import type { TaskState } from "../src/state.ts";

export const SERVICE = DEFAULT_TASK_SETTINGS.service;
export type World = Given<TaskState>;

export function world(
  settings: Partial<TaskSettings> = {},
  options: Pick<GivenOptions, "grants"> = {},
): World {
  const decider = createTaskDecider({ ...DEFAULT_TASK_SETTINGS, ...settings });
  return given(decider, { service: SERVICE, ...options });
}

let made = 0;

interface Fields {
  by?: string;
  id?: string;
  target?: string;
  parent?: string;
  cause?: string;
  payload?: JsonObject;
  more?: Partial<Envelope>;
}

/** `task.<name>` of one task; by agent:a unless told. */
export function ev(name: string, task: string, fields: Fields = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: fields.id ?? `evt_${made}`,
    type: `task.${name}`,
    source: fields.by ?? "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    task_id: task,
    session_id: "sess_1",
    ...(fields.target === undefined ? {} : { target: fields.target }),
    ...(fields.parent === undefined ? {} : { parent_task_id: fields.parent }),
    ...(fields.cause === undefined ? {} : { causation_id: fields.cause }),
    payload: { task_id: task, ...fields.payload },
    ...fields.more,
  };
}

/** Submitted and started by one agent. */
export function running(task: string, fields: Fields = {}): Envelope[] {
  const { by, ...submission } = fields;
  const who = by === undefined ? {} : { by };
  return [ev("submitted", task, { ...submission, ...who }), ev("started", task, who)];
}

/** `<type without "task."> <task>` of each entry that is not a refusal. */
export function said(entries: readonly DomainEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind === "begun") return [`begun ${entry.plan.kind.slice(5)}`];
    if (entry.kind !== "event" || entry.envelope.type === "event.rejected") return [];
    return [`${entry.envelope.type.slice(5)} ${entry.envelope.task_id}`];
  });
}

export function envelopesOf(entries: readonly DomainEntry[]): Envelope[] {
  return entries.flatMap((entry) => (entry.kind === "event" ? [entry.envelope] : []));
}

export function payloadOf(envelope: Envelope | undefined): JsonObject {
  const payload = envelope?.payload;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new Error("no payload object");
  }
  return payload;
}

export function stateOf(scenario: World, task: string): string | undefined {
  return scenario.state.tenants.get(scenario.tenant)?.tasks.get(task)?.state;
}
