/**
 * What the service owes next: graces that have passed, requests, then steps. Moving aside what cannot act
 * now is bookkeeping: the answer stays the same.
 */
import type { Instant, Owed, UnderWay } from "@harmovela/envelope";
import {
  derivedEnding,
  derivedExpired,
  derivedOfSession,
  derivedOfTree,
  derivedResume,
} from "./derived.ts";
import { nextToResume } from "./resumes.ts";
import { type ManagerSettings, REQUESTS_UNDER_WAY_MAX } from "./settings.ts";
import type { Instance, ManagerState, Request, TreePlan, TreeResume, Work } from "./state.ts";
import { nextToInterrupt } from "./trees.ts";

export function owed(
  state: ManagerState,
  settings: ManagerSettings,
  now: Instant,
  { requests }: UnderWay,
): Owed | undefined {
  const grace = state.graces.peek();
  if (grace !== undefined && grace.due <= now) {
    const event = derivedExpired(settings, grace);
    const tenant = grace.task.tenant.name;
    return { event, tenant, cause: event.id, urgency: "timer", due: grace.due };
  }
  const request = nextRequest(state, now, requests);
  if (request !== undefined) {
    const { envelope, tenant, id } = request;
    return { request: envelope, tenant: tenant.name, cause: id, to: "tasks" };
  }
  const step = endingOwed(state, settings) ?? workOwed(state, settings);
  if (step !== undefined) return step;
  const dues = [grace?.due, state.retries.peek()?.due].filter((due) => due !== undefined);
  return dues.length === 0 ? undefined : { wakeAt: Math.min(...dues) };
}

/** Steps go on while many requests wait for their answers. */
function nextRequest(
  { ready, retries }: ManagerState,
  now: Instant,
  underWay: ReadonlySet<string>,
): Request | undefined {
  for (let retry = retries.peek(); retry && retry.due <= now; retry = retries.peek()) {
    retries.remove(retry);
    ready.add(retry);
  }
  if (underWay.size >= REQUESTS_UNDER_WAY_MAX) return undefined;
  for (const request of ready) if (!underWay.has(request.id)) return request;
  return undefined;
}

type Step = Extract<Owed, { event: unknown }>;

function stepOf(event: Step["event"], tenant: string, cause: string): Step {
  return { event, tenant, cause, urgency: "step", due: 0 };
}

/** The closing entry of an interruption whose task has ended. */
function endingOwed({ endings }: ManagerState, { service }: ManagerSettings): Step | undefined {
  const [ending] = endings.values();
  if (ending === undefined) return undefined;
  const event = derivedEnding(service, ending);
  return stepOf(event, ending.task.tenant.name, event.id);
}

function workOwed(state: ManagerState, settings: ManagerSettings): Step | undefined {
  for (let work = state.ring.head; work; work = state.ring.head) {
    const step = stepOfWork(state, settings, work);
    if (step) return step;
  }
  return undefined;
}

function stepOfWork(state: ManagerState, settings: ManagerSettings, work: Work): Step | undefined {
  switch (work.kind) {
    case "tree":
      return treeOwed(state, settings, work);
    case "resume":
      return resumeOwed(state, settings, work);
    case "instance":
      return sessionOwed(state, settings, work);
  }
}

function treeOwed(
  state: ManagerState,
  { service }: ManagerSettings,
  plan: TreePlan,
): Step | undefined {
  const next = nextToInterrupt(state, plan);
  if (next === "waits") return undefined;
  const event = next === undefined ? plan.envelope : derivedOfTree(service, plan, next);
  return stepOf(event, plan.root.tenant.name, plan.id);
}

function resumeOwed(
  state: ManagerState,
  { service }: ManagerSettings,
  resume: TreeResume,
): Step | undefined {
  const next = nextToResume(resume);
  if (next?.saved === undefined) {
    // Those that are left end with their tasks.
    state.ring.remove(resume);
    return undefined;
  }
  const event = derivedResume(service, resume, next.task, next.saved.checkpoint);
  return stepOf(event, resume.tenant.name, resume.id);
}

/** A session that was lost leaves its tasks to the coordinator, unless the setting says otherwise (spec 5.1). */
function sessionOwed(
  state: ManagerState,
  settings: ManagerSettings,
  instance: Instance,
): Step | undefined {
  const { endedBy, tasks, tenant } = instance;
  const isOurs = endedBy?.type === "session.closed" || settings.orphanedTasks === "interrupt";
  const task = tasks.last;
  if (!isOurs || endedBy === undefined || task === undefined) {
    state.ring.remove(instance);
    return undefined;
  }
  const event = derivedOfSession(settings, instance, task);
  return stepOf(event, tenant.name, event.id);
}
