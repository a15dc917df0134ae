/**
 * Events that the service owes, ready to be written. An entry of the log takes its duty off the
 * agenda; what became pointless meanwhile is struck by the fold.
 */
import type { Envelope, Instant } from "@harmovela/envelope";
import { Heap } from "../heap.ts";

export interface Duty {
  readonly due: Instant;
  readonly order: number;
  index: number;
  readonly tenant: string;
  readonly event: Envelope;
  /** "step": one of many, worked off between messages. */
  readonly urgency: "timer" | "step";
}

export interface Agenda {
  readonly timers: Heap<Duty>;
  readonly steps: Heap<Duty>;
  /** By tenant and id of the event. */
  readonly duties: Map<string, Duty>;
  /** Duties made so far; it orders what is due at the same time. */
  count: number;
}

export function createAgenda(): Agenda {
  return { timers: new Heap(), steps: new Heap(), duties: new Map(), count: 0 };
}

/** Owed from `due` on; before the next message is judged. */
export function addTimer(agenda: Agenda, tenant: string, event: Envelope, due: Instant): void {
  add(agenda, { tenant, event, due, urgency: "timer" });
}

/** Owed now, in turn with the messages. */
export function addStep(agenda: Agenda, tenant: string, event: Envelope): void {
  add(agenda, { tenant, event, due: 0, urgency: "step" });
}

function add(agenda: Agenda, fields: Omit<Duty, "order" | "index">): void {
  const key = dutyKey(fields.tenant, fields.event.id);
  if (agenda.duties.has(key)) return;
  agenda.count += 1;
  const duty: Duty = { ...fields, order: agenda.count, index: -1 };
  agenda.duties.set(key, duty);
  (duty.urgency === "timer" ? agenda.timers : agenda.steps).add(duty);
}

/** The duty that was struck; nothing happens when there is no such one. */
export function strike(agenda: Agenda, tenant: string, id: string): Duty | undefined {
  const key = dutyKey(tenant, id);
  const duty = agenda.duties.get(key);
  if (duty === undefined) return undefined;
  agenda.duties.delete(key);
  (duty.urgency === "timer" ? agenda.timers : agenda.steps).remove(duty);
  return duty;
}

function dutyKey(tenant: string, id: string): string {
  return `${tenant} ${id}`;
}
