import assert from "node:assert/strict";
import type { DomainEntry, Envelope, EventEntry } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import { type Given, given } from "@harmovela/testkit";
import { type BeliefSettings, createBeliefDecider, DEFAULT_BELIEF_SETTINGS } from "../src/index.ts";
import { BELIEF_READS } from "../src/reads.ts";
import type { BeliefState } from "../src/state.ts";

export const SERVICE = DEFAULT_BELIEF_SETTINGS.service;
/** Where the clock stands at first, and `created_at` of what says nothing else. */
export const NOW = Date.UTC(2026, 10, 30, 10);
export type World = Given<BeliefState>;

export function world(settings: Partial<BeliefSettings> = {}): World {
  const decider = createBeliefDecider({ ...DEFAULT_BELIEF_SETTINGS, ...settings });
  return given(decider, { service: SERVICE, at: NOW });
}

export const iso = (ms: number): string => new Date(ms).toISOString();

export type Fields = Partial<Envelope>;
let made = 0;

export function event(type: string, payload: JsonObject, fields: Fields = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_${made}`,
    type,
    source: "agent:a",
    created_at: iso(NOW),
    payload,
    ...fields,
  };
}

/** `memory.fact.added` by agent:a unless told. */
export function fact(id: string, value: JsonValue, fields: Fields = {}): Envelope {
  return event("memory.fact.added", { fact_id: id, value }, fields);
}

export function retract(id: string, fields: Fields = {}): Envelope {
  return event(
    "memory.fact.invalidated",
    { fact_id: id },
    { belief_status: "retracted", ...fields },
  );
}

export function revise(previous: string, corrected: string, fields: Fields = {}): Envelope {
  const status = { belief_status: "revised", belief_scope: "inference" } as const;
  return event("belief.revised", { previous, corrected }, { ...status, ...fields });
}

export function windowChanged(
  resource: string,
  payload: JsonObject,
  fields: Fields = {},
): Envelope {
  return event("freshness.window.changed", { resource, ...payload }, fields);
}

/** Cites events as its evidence, the last one as its cause. */
export function resting(...ids: string[]): Fields {
  const last = ids.at(-1);
  return {
    evidence_chain: ids.map((id) => ({ source: "agent:x", id })),
    ...(last === undefined ? {} : { causation_id: last }),
  };
}

export function envelopesOf(entries: readonly DomainEntry[]): Envelope[] {
  return entries.flatMap((entry) => (entry.kind === "event" ? [entry.envelope] : []));
}

/** What the service says by itself at the clock's time. */
export function derived(scenario: World, now?: number): Envelope[] {
  return envelopesOf(scenario.settle(now)).filter(({ source }) => source === SERVICE);
}

export function payloadOf(envelope: Envelope | undefined): JsonObject {
  const payload = envelope?.payload;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new Error("no payload object");
  }
  return payload;
}

export function read(
  scenario: World,
  verb: keyof typeof BELIEF_READS,
  params: JsonObject,
): JsonObject {
  const context = { tenant: scenario.tenant, now: scenario.now };
  return BELIEF_READS[verb](scenario.state, params, context) as JsonObject;
}

/** The codes of what speaks against acting on it; empty: nothing. */
export function against(scenario: World, params: JsonObject): string[] {
  const { useable, reasons } = read(scenario, "useable", params);
  const codes = (reasons as JsonObject[]).map(({ reason }) => String(reason));
  if (useable === codes.length > 0) throw new Error("useable and reasons disagree");
  return [...new Set(codes)];
}

let observed = 0;

/** Lets the service observe an entry of another domain's log. */
export function observe(
  scenario: World,
  domain: "tasks" | "provenance",
  envelope: Envelope,
  cause: EventEntry["cause"] = { in: 1 },
): World {
  observed += 1;
  const frame = { tenant: scenario.tenant, cause, at: scenario.now, epoch: 1, prev: 0, seen: {} };
  const entry = { ...frame, seq: observed, kind: "event", envelope } as const;
  scenario.decider.observe?.(scenario.state, domain, entry);
  return scenario;
}

/** What speaks against acting on the claim, from each such time on. */
export type Course = [number, string[]][];

/** Follows the claim on `memory:t` over its whole life; tells when its expiries were logged. */
export function follow(scenario: World, course: Course): number[] {
  const told: number[] = [];
  for (const [at, expected] of course) {
    for (const now of [at - 1, at]) {
      if (now < scenario.now) continue;
      told.push(...derived(scenario, now).map(() => now));
    }
    assert.deepEqual(against(scenario, { key: "memory:t" }), expected, `${at - NOW} ms on`);
  }
  assert.deepEqual(derived(scenario, NOW + 1e9), [], "nothing more");
  return told;
}
