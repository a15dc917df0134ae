/** State of the families around tasks: sessions, subscriptions, exchanges, tool calls, budgets. */
import {
  createSessionBook,
  type Envelope,
  type Instant,
  type Session,
  type SessionBook,
} from "@harmovela/envelope";
import { Heap } from "../heap.ts";
import { type Agenda, createAgenda } from "./agenda.ts";
import type { FamilySettings } from "./settings.ts";

/** Kinds of things that are forgotten when nobody uses them; most are named like their table. */
export type MemoryKind = "sources" | "versions" | "calls" | "budgets" | ExchangeKind;

/** When a thing was used last; it is forgotten when that is longer ago than the retention. */
export interface Memory {
  /** The last use that was known when its place in the heap was found. */
  due: Instant;
  readonly order: number;
  index: number;
  usedAt: Instant;
  readonly tenant: TenantFamilies;
  readonly kind: MemoryKind;
  readonly key: string;
}

export interface Subscription {
  readonly id: string;
  readonly consumer: string;
  readonly session: string | undefined;
  /** Id and position of the request. */
  readonly requestedBy: string;
  readonly seq: number;
  /** Id of its `subscription.created`. */
  readonly createdBy: string;
  /** Id of the `subscription.cancelled` that the end of its session owes. */
  cancelledBy: string | undefined;
  state: "requested" | "created";
}

export type ExchangeKind = "command" | "query";

/** A live command or query (spec 5.9); a settled one is forgotten at once. */
export interface Exchange {
  readonly kind: ExchangeKind;
  readonly correlation: string;
  readonly requester: string;
  readonly target: string;
  readonly requestedBy: string;
  readonly seq: number;
  readonly at: Instant;
  readonly scope: string | undefined;
  readonly windowMs: number;
  readonly memory: Memory;
  /** The request without its content. */
  readonly request: Envelope;
  /** The answer that is owed: acceptance, or refusal when the window ends. */
  duty: string | undefined;
  state: "requested" | "accepted";
}

export type CallState = "requested" | "accepted" | "started" | "progress" | "output";

export interface ToolCall {
  readonly id: string;
  readonly caller: string;
  /** Named by the request, else whoever answers first. */
  tool: string | undefined;
  readonly memory: Memory;
  state: CallState;
}

export interface Budget {
  readonly id: string;
  readonly issuer: string;
  limit: number;
  spent: number;
  isExhausted: boolean;
  readonly memory: Memory;
}

/** The newest snapshot that was answered. */
export interface Version {
  newest: number | string;
  readonly memory: Memory;
}

/** Ids come from agents, so every table is a Map. */
export interface TenantFamilies {
  readonly name: string;
  /** Everybody whose word was accepted, and when last. */
  readonly sources: Map<string, Memory>;
  readonly subscriptions: Map<string, Subscription>;
  /** Live subscriptions by session, or by agent outside sessions, and by consumer. */
  readonly subscribers: Map<string, Map<string, Set<Subscription>>>;
  readonly commands: Map<string, Exchange>;
  readonly queries: Map<string, Exchange>;
  /** Requests to agents that nobody has seen, by agent. */
  readonly awaited: Map<string, Set<Exchange>>;
  /** By target and scope, longest unused first. */
  readonly versions: Map<string, Version>;
  readonly calls: Map<string, ToolCall>;
  readonly budgets: Map<string, Budget>;
}

/** A session whose heartbeats are awaited. `due` is when to look again, not when it is lost. */
export interface Watch {
  due: Instant;
  readonly order: number;
  index: number;
  readonly session: Session;
}

export interface FamilyState {
  readonly sessions: SessionBook;
  readonly tenants: Map<string, TenantFamilies>;
  readonly agenda: Agenda;
  readonly watched: Heap<Watch>;
  /** By tenant and id of the `session.error` that would be owed. */
  readonly watches: Map<string, Watch>;
  /** What is forgotten when nobody uses it, of all tenants. */
  readonly memories: Heap<Memory>;
}

export function createFamilyState(settings: FamilySettings): FamilyState {
  return {
    sessions: createSessionBook({ retentionMs: settings.retentionMs }),
    tenants: new Map(),
    agenda: createAgenda(),
    watched: new Heap(),
    watches: new Map(),
    memories: new Heap(),
  };
}

export function openTenant(state: FamilyState, name: string): TenantFamilies {
  let tenant = state.tenants.get(name);
  if (tenant === undefined) {
    tenant = {
      name,
      sources: new Map(),
      subscriptions: new Map(),
      subscribers: new Map(),
      commands: new Map(),
      queries: new Map(),
      awaited: new Map(),
      versions: new Map(),
      calls: new Map(),
      budgets: new Map(),
    };
    state.tenants.set(name, tenant);
  }
  return tenant;
}
