/**
 * What the coordinator is asked for (architecture, section 2). Called by folds alone.
 *
 * Q1 A request is owed by an entry of the own log, which it names as its cause.
 * Q2 It is settled by the entry of the log of `tasks` that has its id, by a final refusal that names it,
 *    or by the end of its task, after which nobody wants it. A plan that will log it is its outcome too.
 * Q3 Refused as retryable it is asked again under another id, after a pause.
 */
import { type DomainEntry, deriveId, type Envelope, type Instant } from "@harmovela/envelope";
import { payloadObject, textIn } from "./rules/payload.ts";
import { dueAfter } from "./rules/policy.ts";
import { type ManagerSettings, RETRY_MS_MAX, RETRY_MS_MIN } from "./settings.ts";
import {
  type Compensation,
  keyOf,
  type ManagerState,
  type Request,
  type TaskRecord,
  type TenantState,
} from "./state.ts";
import { place } from "./tasks/instances.ts";

interface Subject {
  tenant: TenantState;
  /** Whose end is asked for. */
  task?: TaskRecord;
  /** Whose task is asked for. */
  compensation?: Compensation;
}

/** Q1: `at` is the time of the entry that owes it. Each attempt gives the draft an id of its own. */
export function ask(state: ManagerState, subject: Subject, draft: Envelope, at: Instant): void {
  add(state, subject, draft, { attempt: 1, at, due: at });
}

function add(
  state: ManagerState,
  { tenant, task, compensation }: Subject,
  draft: Envelope,
  { attempt, at, due }: { attempt: number; at: Instant; due: Instant },
): void {
  const id = deriveId(tenant.name, draft.causation_id ?? "", `${draft.type}:${attempt}`, at);
  state.count += 1;
  const request: Request = {
    id,
    tenant,
    task,
    compensation,
    envelope: { ...draft, id },
    attempt,
    due,
    order: state.count,
    index: -1,
  };
  state.requests.set(keyOf(tenant.name, id), request);
  if (due > at) state.retries.add(request);
  else state.ready.add(request);
  if (compensation) compensation.request = request;
  if (task === undefined) return;
  task.asked = [...(task.asked ?? []), request];
  place(state, task);
}

/** Nobody waits for it any more. */
export function settle(state: ManagerState, request: Request): void {
  const { tenant, id, task, compensation } = request;
  state.requests.delete(keyOf(tenant.name, id));
  leaveQueues(state, request);
  if (compensation?.request === request) compensation.request = undefined;
  if (task === undefined) return;
  const rest = task.asked?.filter((other) => other !== request) ?? [];
  task.asked = rest.length === 0 ? undefined : rest;
  place(state, task);
}

/** Q2: with its task its ends are settled. */
export function settleEnds(state: ManagerState, task: TaskRecord): void {
  for (const request of task.asked ?? []) settle(state, request);
}

/** Folds an answer of the coordinator; the request that it has refused for good, and why. */
export function foldOutcome(
  state: ManagerState,
  settings: ManagerSettings,
  entry: DomainEntry,
): { request: Request; code: string } | undefined {
  if (state.requests.size === 0) return undefined;
  const known = (id: string) => state.requests.get(keyOf(entry.tenant, id));
  switch (entry.kind) {
    case "begun": {
      // It comes, and nobody may think until then that it does not.
      const begun = known(entry.plan.envelope.id);
      if (begun) leaveQueues(state, begun);
      return undefined;
    }
    case "obligation_failed": {
      // With any step of a plan the whole of it is given up.
      const { id, cause } = entry;
      const givenUp = known(id) ?? ("owed" in cause ? known(cause.owed) : undefined);
      if (givenUp) settle(state, givenUp);
      return undefined;
    }
    case "event": {
      const { envelope, at } = entry;
      const logged = known(envelope.id);
      if (logged) settle(state, logged);
      if (envelope.type !== "event.rejected" || envelope.source !== settings.coordinator) return;
      const named = known(textIn(envelope, "acknowledged_event_id") ?? "");
      return named && refuse(state, named, envelope, at);
    }
    default:
      return undefined;
  }
}

function leaveQueues({ ready, retries }: ManagerState, request: Request): void {
  ready.delete(request);
  retries.remove(request);
}

/** Q3. */
function refuse(
  state: ManagerState,
  request: Request,
  refusal: Envelope,
  at: Instant,
): { request: Request; code: string } | undefined {
  const error = payloadObject(refusal)?.error as
    | { retryable?: unknown; code?: unknown }
    | undefined;
  settle(state, request);
  if (error?.retryable !== true) return { request, code: String(error?.code ?? "") };
  const pause = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(request.attempt - 1, 20));
  const { tenant, task, compensation, attempt, envelope } = request;
  const subject = {
    tenant,
    ...(task === undefined ? {} : { task }),
    ...(compensation === undefined ? {} : { compensation }),
  };
  add(state, subject, envelope, { attempt: attempt + 1, at, due: dueAfter(at, pause) });
  return undefined;
}
