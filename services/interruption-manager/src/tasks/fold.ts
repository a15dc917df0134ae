/**
 * The log of `tasks`, as far as this service has to know it. Total: what does not fit the state (a log
 * may begin in the middle) changes nothing.
 */
import { type DomainEntry, type EventEntry, evolveSession, isHarness } from "@harmovela/envelope";
import { adopt, refuseCompensation } from "../compensations.ts";
import { closeTenant, forget } from "../forgetting.ts";
import { oweEnding } from "../interruptions.ts";
import { foldOutcome, settleEnds } from "../requests.ts";
import { taskIdOf } from "../rules/payload.ts";
import type { ManagerSettings } from "../settings.ts";
import { type ManagerState, openTenant, type TaskEnd, type TaskRecord } from "../state.ts";
import { addTask, endTask, nameIn, removeTask } from "./book.ts";
import { followSessionEnd, giveTo, instanceOf, place } from "./instances.ts";
import { foldOffer } from "./offers.ts";

const TERMINAL: ReadonlySet<string> = new Set([
  "task.completed",
  "task.failed",
  "task.cancelled",
  "task.timed_out",
]);
/** Events of a task that say nothing about its state. */
const STATELESS = "task.cancel.requested";

export function observeTasks(
  state: ManagerState,
  settings: ManagerSettings,
  entry: DomainEntry,
): void {
  forget(state, settings.retentionMs, entry.at);
  evolveSession(state.sessions, entry);
  followSessionEnd(state, entry);
  const refused = foldOutcome(state, settings, entry);
  const compensation = refused?.request.compensation;
  if (refused && compensation) {
    refuseCompensation(state, compensation, { code: refused.code, at: entry.at });
  }
  if (entry.kind === "event") follow(state, settings, entry);
  const tenant = state.tenants.get(entry.tenant);
  if (tenant !== undefined) closeTenant(state, tenant);
}

function follow(state: ManagerState, settings: ManagerSettings, entry: EventEntry): void {
  const { type, source } = entry.envelope;
  if (type === "task.submitted") submit(state, settings, entry);
  else if (type.startsWith("task.")) move(state, entry);
  else if (type.startsWith("delegation.") && !isHarness(source)) {
    const tenant = openTenant(state, entry.tenant);
    const gone = foldOffer(state, tenant, entry);
    if (gone) over(state, gone.removed, gone.end, removeTask);
  }
}

function submit(state: ManagerState, settings: ManagerSettings, entry: EventEntry): void {
  const { envelope } = entry;
  const id = taskIdOf(envelope);
  if (id === undefined) return;
  const tenant = openTenant(state, entry.tenant);
  const known = tenant.tasks.get(id);
  if (known && !known.ended && !known.isExternal) {
    known.isSubmitted = true;
    return;
  }
  const compensation = tenant.compensations.get(id);
  const isMade = envelope.source === settings.service && compensation !== undefined;
  const submitter = isMade ? compensation.requestedBy : envelope.source;
  const task = addTask(tenant, id, entry, { submitter, target: envelope.target });
  task.isSubmitted = !isMade;
  adopt(tenant, task);
}

function move(state: ManagerState, entry: EventEntry): void {
  const { envelope, seq, at } = entry;
  const { type, id, source } = envelope;
  const task = state.tenants.get(entry.tenant)?.tasks.get(taskIdOf(envelope) ?? "");
  if (task === undefined || task.ended || type === STATELESS) return;
  task.state = type.slice("task.".length);
  if (TERMINAL.has(type)) {
    over(state, task, { id, type, seq, at }, (ended, end) => endTask(state, ended, end));
    return;
  }
  const isTaken = type === "task.accepted" || type === "task.started";
  const isFirst = isTaken && task.owner === undefined;
  if (!isFirst && !(task.isFree && task.owner === source)) return;
  task.owner = nameIn(task.tenant, source);
  giveTo(state, task, instanceOf(state, task.tenant, envelope));
}

/** With a task end what is asked for it and what interrupts it. */
function over(
  state: ManagerState,
  task: TaskRecord,
  end: TaskEnd,
  leave: (task: TaskRecord, end: TaskEnd) => void,
): void {
  leave(task, end);
  settleEnds(state, task);
  place(state, task);
  if (task.open) oweEnding(state, task.open);
}
