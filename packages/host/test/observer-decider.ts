/**
 * A domain that observes `tasks`: for every `task.output` that a service logs there it asks `tasks`,
 * once, to log a `task.blocked`, and notes what came of it.
 */
import { type Decider, deriveId, type Envelope, formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

export const OBSERVER_SERVICE = "service:observer";

export interface ObserverState {
  owed: Map<string, { tenant: string; request: Envelope }>;
  outcomes: Map<string, string>;
  accepted: number;
}

export function describeObserver(state: ObserverState): JsonObject {
  return {
    owed: [...state.owed.keys()],
    outcomes: Object.fromEntries(state.outcomes),
    accepted: state.accepted,
  };
}

export function createObserverDecider(): Decider<ObserverState> {
  return {
    initial: () => ({ owed: new Map(), outcomes: new Map(), accepted: 0 }),
    snapshots: { version: 1, classes: {} },
    decide: (_state, { envelope }) => ({ accept: envelope }),
    evolve: (state, entry) => {
      if (entry.kind === "event") state.accepted += 1;
    },
    observe: (state, _domain, entry) => {
      if (entry.kind !== "event") return;
      const { envelope, tenant, at } = entry;
      const answered = state.owed.has(envelope.id) ? envelope.id : (envelope.causation_id ?? "");
      if (state.owed.delete(answered)) state.outcomes.set(answered, envelope.type);
      if (envelope.type !== "task.output") return;
      const id = deriveId(tenant, envelope.id, "ask", at);
      const request: Envelope = {
        spec_version: "0.2",
        id,
        type: "task.blocked",
        source: OBSERVER_SERVICE,
        created_at: formatInstant(at),
        causation_id: envelope.id,
        payload: {},
      };
      state.owed.set(id, { tenant, request });
    },
    owed: (state, _now, { requests }) => {
      for (const [id, { tenant, request }] of state.owed) {
        if (!requests.has(id)) return { request, tenant, cause: id, to: "tasks" };
      }
      return undefined;
    },
  };
}
