/**
 * A domain as small as can be that still uses every kind of decision and obligation: `task.progress`
 * adds one to the sender's count, `task.failed` is refused, `task.completed` begins a plan of three
 * derived steps, `task.submitted` with `timeout_ms` owes one derived `task.timed_out`.
 */
import {
  type Decider,
  type DomainEntry,
  deriveId,
  type Envelope,
  formatInstant,
  type Instant,
} from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";

const STEPS = 3;
export const COUNTER_SERVICE = "service:counter";

interface OpenPlan {
  tenant: string;
  at: Instant;
  envelope: Envelope;
  done: number;
}

interface Timer {
  tenant: string;
  task: string;
  due: Instant;
}

export interface CounterState {
  counts: Map<string, number>;
  plans: Map<string, OpenPlan>;
  timers: Timer[];
  failed: string[];
}

export function describeCounter(state: CounterState): JsonObject {
  return {
    counts: Object.fromEntries(state.counts),
    plans: [...state.plans.keys()],
    timers: state.timers.map((timer) => `${timer.tenant}/${timer.task}@${timer.due}`),
    failed: state.failed,
  };
}

function derived(
  tenant: string,
  cause: string,
  index: string,
  at: Instant,
  type: string,
): Envelope {
  return {
    spec_version: "0.2",
    id: deriveId(tenant, cause, index, at),
    type,
    source: COUNTER_SERVICE,
    created_at: formatInstant(at),
    causation_id: cause,
    payload: {},
  };
}

const timeoutOf = (envelope: Envelope): number | undefined =>
  (envelope.payload as { timeout_ms?: number } | null)?.timeout_ms;

/** An id is a tenant's; two of them may use the same one. */
const planKey = (tenant: string, cause: string): string => `${tenant}/${cause}`;

function evolveEvent(state: CounterState, entry: Extract<DomainEntry, { kind: "event" }>): void {
  const { envelope, tenant } = entry;
  if (envelope.type.endsWith(".rejected")) return;
  if ("owed" in entry.cause) {
    const key = planKey(tenant, entry.cause.owed);
    const plan = state.plans.get(key);
    if (plan === undefined) {
      state.timers = state.timers.filter((timer) => timer.task !== envelope.task_id);
    } else if (envelope.id === plan.envelope.id) state.plans.delete(key);
    else plan.done += 1;
    return;
  }
  const key = `${tenant}/${envelope.source}`;
  state.counts.set(key, (state.counts.get(key) ?? 0) + 1);
  const timeout = timeoutOf(envelope);
  if (envelope.type === "task.submitted" && timeout !== undefined) {
    state.timers.push({ tenant, task: envelope.task_id ?? "", due: entry.at + timeout });
    state.timers.sort((a, b) => a.due - b.due);
  }
  if (envelope.type === "task.progress") {
    state.timers = state.timers.filter((timer) => timer.task !== envelope.task_id);
  }
}

/** `steps`: how many derived events a plan owes. */
export function createCounterDecider(steps = STEPS): Decider<CounterState> {
  return {
    initial: () => ({ counts: new Map(), plans: new Map(), timers: [], failed: [] }),
    snapshots: { version: 1, classes: {} },
    decide: (_state, { envelope }) => {
      if (envelope.type === "task.failed") return { reject: reject("task_error", "refused") };
      if (envelope.type === "task.completed") {
        return { begin: { id: envelope.id, kind: "three steps", envelope } };
      }
      return { accept: envelope };
    },
    evolve: (state, entry) => {
      if (entry.kind === "obligation_failed") {
        state.failed.push(entry.id);
        state.plans.delete(planKey(entry.tenant, entry.id));
        state.timers = state.timers.filter(
          (timer) => deriveId(timer.tenant, timer.task, "timeout", timer.due) !== entry.id,
        );
      } else if (entry.kind === "begun") {
        const { tenant, at, plan } = entry;
        const { envelope } = plan;
        state.plans.set(planKey(tenant, plan.id), { tenant, at, envelope, done: 0 });
      } else if (entry.kind === "event") evolveEvent(state, entry);
    },
    owed: (state, now) => {
      const timer = state.timers[0];
      if (timer !== undefined && timer.due <= now) {
        const { tenant, task, due } = timer;
        const event = derived(tenant, task, "timeout", due, "task.timed_out");
        return { event: { ...event, task_id: task }, tenant, cause: task, urgency: "timer", due };
      }
      for (const { tenant, at, envelope, done } of state.plans.values()) {
        const cause = envelope.id;
        const event =
          done < steps ? derived(tenant, cause, `step:${done}`, at, "task.output") : envelope;
        return { event, tenant, cause, urgency: "step", due: 0 };
      }
      return timer === undefined ? undefined : { wakeAt: timer.due };
    },
  };
}
