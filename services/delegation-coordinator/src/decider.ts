import { type Decider, Fifo, tellProof } from "@harmovela/envelope";
import { decide } from "./decide.ts";
import { refuseQueryToken } from "./delegation/query.ts";
import { evolve } from "./evolve.ts";
import { decideFamily } from "./families/decide.ts";
import { evolveFamily } from "./families/evolve.ts";
import { owedByFamily, sooner } from "./families/owed.ts";
import { isWatched } from "./families/sessions.ts";
import { Heap } from "./heap.ts";
import { followSessionEnd, wakeLost } from "./instances.ts";
import { observeInterruptions } from "./interruptions/observe.ts";
import { owed } from "./owed.ts";
import { Ring } from "./ring.ts";
import type { TaskSettings } from "./settings.ts";
import { createState, type TaskState } from "./state.ts";

/** Of the state's form; raised with every change to what `TaskState` holds. */
const SNAPSHOT_VERSION = 4;

/**
 * The decider of the domain `tasks`: tasks, their tree, how they end and change hands (spec 5.4 to
 * 5.6, 7, 9.8), and around them sessions, subscriptions, commands, queries, tool calls and budgets (4.3, 5.1, 5.2, 5.9, 5.10).
 * Families without rules of their own are accepted as facts. It observes `interruptions`: what is stopped, and what its service may ask for.
 */
export function createTaskDecider(settings: TaskSettings): Decider<TaskState> {
  const { service } = settings;
  return {
    initial: () => createState(settings),
    decide: (state, input, ctx) => {
      const decision =
        decideFamily(state.families, settings, input, ctx) ?? decide(state, settings, input, ctx);
      const refused =
        "accept" in decision ? refuseQueryToken(state, settings, input, ctx) : undefined;
      return refused ?? tellProof(decision, input, settings, ctx.now);
    },
    evolve: (state, entry) => {
      evolve(state, settings, entry);
      evolveFamily(state.families, settings, entry);
      followSessionEnd(state, entry);
    },
    observe: (state, domain, entry) => {
      if (domain === "interruptions") observeInterruptions(state, settings, entry);
    },
    owed: (state, now, { heartbeats }) =>
      sooner(owedByFamily(state.families, service, now, heartbeats), owed(state, settings, now)),
    snapshots: {
      version: SNAPSHOT_VERSION,
      classes: { Heap, Ring, Fifo },
      adopt: (state) => {
        state.families.sessions.retentionMs = settings.retentionMs;
        wakeLost(state);
      },
    },
    watches: (state, tenant, source, sessionId) =>
      isWatched(state.families, tenant, source, sessionId),
  };
}
