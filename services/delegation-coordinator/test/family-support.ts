import assert from "node:assert/strict";
import {
  type Envelope,
  type EventEntry,
  findSession,
  type Heartbeats,
  type Owed,
  type Session,
} from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { createTaskDecider, DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import { payloadOf, type World } from "./support.ts";

let made = 0;

/** Any event; by agent:a with an object as payload unless told. */
export function event(type: string, fields: Partial<Envelope> = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_family_${made}`,
    type,
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload: {},
    ...fields,
  };
}

/** An event of a session, which its payload names too. */
export function ofSession(
  name: string,
  id: string,
  payload: JsonObject = {},
  fields: Partial<Envelope> = {},
): Envelope {
  return event(`session.${name}`, {
    session_id: id,
    payload: { session_id: id, ...payload },
    ...fields,
  });
}

export function opened(
  id: string,
  capabilities?: JsonObject,
  fields: Partial<Envelope> = {},
): Envelope {
  const declared: JsonObject = capabilities === undefined ? {} : { capabilities };
  return ofSession("opened", id, { version: "0.2", ...declared }, fields);
}

/** Opens a session and lets the service answer. */
export function openSession(
  scenario: World,
  id: string,
  capabilities?: JsonObject,
  fields: Partial<Envelope> = {},
): World {
  scenario.given(opened(id, capabilities, fields)).settle();
  return scenario;
}

export function sessionOf(scenario: World, id: string): Session {
  const session = findSession(scenario.state.families.sessions, scenario.tenant, id);
  assert.ok(session, `no session ${id}`);
  return session;
}

/** What the service said by itself at the clock's time. */
export function derived(scenario: World): Envelope[] {
  return scenario
    .settle()
    .filter((entry): entry is EventEntry => entry.kind === "event")
    .map(({ envelope }) => envelope);
}

/** Judges lines as a conversation does: what is owed is said before the next one. */
export function answers(scenario: World, lines: readonly Envelope[]): string[] {
  return lines.flatMap((line) => {
    const { decision } = scenario.judge(line);
    const answer =
      "reject" in decision
        ? `${decision.as ?? "event.rejected"} ${decision.reject.code}`
        : Object.keys(decision)[0];
    const said = derived(scenario).map(({ type }) => `> ${type}`);
    return [answer ?? "", ...said];
  });
}

export function errorOf(envelope: Envelope | undefined): JsonObject {
  const { error } = payloadOf(envelope);
  assert.ok(typeof error === "object" && error !== null && !Array.isArray(error));
  return error;
}

/** What is owed while somebody listens to heartbeats. */
export function owedListening(scenario: World, heartbeats: Heartbeats): Owed | undefined {
  const decider = createTaskDecider(DEFAULT_TASK_SETTINGS);
  const ask = () =>
    decider.owed(scenario.state, scenario.now, { requests: new Set<string>(), heartbeats });
  const first = ask();
  assert.deepEqual(ask(), first, "an obligation asked for twice");
  return first;
}
