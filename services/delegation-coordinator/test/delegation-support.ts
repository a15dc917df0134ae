import { type Envelope, formatInstant, type Instant, type TokenFacts } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { given } from "@harmovela/testkit";
import { delegationOf, findDelegation, ownerOf } from "../src/delegation/state.ts";
import { createTaskDecider, DEFAULT_TASK_SETTINGS, type TaskSettings } from "../src/index.ts";
import { ev, SERVICE, type World } from "./support.ts";

/** A world in which tokens are readable: `signed(…)` verifies, `forged` does not, the rest is opaque. */
export function tokenWorld(settings: Partial<TaskSettings> = {}): World {
  const decider = createTaskDecider({ ...DEFAULT_TASK_SETTINGS, ...settings });
  return given(
    {
      ...decider,
      decide: (state, input, ctx) => {
        const { handoff_token: token } = input.envelope;
        const facts = token === undefined ? {} : { token: factsOf(token) };
        return decider.decide(state, { ...input, ...facts }, ctx);
      },
    },
    { service: SERVICE },
  );
}

function factsOf(token: string): TokenFacts {
  if (token === "forged") return { kind: "forged" };
  if (!token.startsWith("signed ")) return { kind: "opaque" };
  return { kind: "verified", claims: JSON.parse(token.slice("signed ".length)) as JsonObject };
}

export function signed(claims: JsonObject): string {
  return `signed ${JSON.stringify(claims)}`;
}

/** Claims of a good token for task c under p, from the planner to the worker; `undefined` leaves one out. */
export function claims(now: Instant, jti: string, over: Partial<Record<string, unknown>> = {}) {
  const all = {
    iss: "agent:planner",
    sub: "agent:worker",
    task_id: "c",
    parent_task_id: "p",
    iat: now / 1000,
    exp: now / 1000 + 600,
    jti,
    ...over,
  };
  return JSON.parse(JSON.stringify(all)) as JsonObject;
}

let made = 0;

interface Fields {
  by?: string;
  to?: string;
  from?: string;
  id?: string;
  task?: string;
  parent?: string | undefined;
  token?: string;
  session?: string;
  payload?: JsonObject;
  more?: Partial<Envelope>;
}

/** `delegation.<name>` of task c under p between the planner and the worker, by whose turn it is. */
export function del(name: string, fields: Fields = {}): Envelope {
  made += 1;
  const { from = "agent:planner", to = "agent:worker", token, session } = fields;
  const isWorkers = name === "accepted" || name === "rejected";
  const parent = "parent" in fields ? fields.parent : "p";
  const reason: JsonObject = ["rejected", "escalated"].includes(name) ? { reason: "busy" } : {};
  return {
    spec_version: "0.2",
    id: fields.id ?? `evt_del_${made}`,
    type: `delegation.${name}`,
    source: fields.by ?? (isWorkers ? to : from),
    created_at: formatInstant(Date.UTC(2026, 10, 30)),
    delegated_by: from,
    delegated_to: to,
    task_id: fields.task ?? "c",
    ...(parent === undefined ? {} : { parent_task_id: parent }),
    ...(token === undefined ? {} : { handoff_token: token }),
    ...(session === undefined ? {} : { session_id: session }),
    payload: { ...reason, ...fields.payload },
    ...fields.more,
  };
}

/** p runs; the planner has nothing but the wish to delegate under it. */
export function parented(settings: Partial<TaskSettings> = {}): World {
  return tokenWorld(settings).given(
    ev("submitted", "p", { by: "agent:probe" }),
    ev("accepted", "p", { by: "agent:probe" }),
    ev("started", "p", { by: "agent:probe" }),
  );
}

export const requested = (settings: Partial<TaskSettings> = {}): World =>
  parented(settings).given(del("requested"));
export const accepted = (settings: Partial<TaskSettings> = {}): World =>
  requested(settings).given(del("accepted"));
export const rejected = (): World => requested().given(del("rejected"));
export const handedOff = (id = "evt_handed_off"): World => {
  const scenario = accepted();
  const token = signed(claims(scenario.now, "jti_1"));
  return scenario.given(del("handoff.completed", { token, id }));
};
export const escalated = (): World =>
  accepted().given(del("escalated", { by: "agent:planner", to: "agent:boss" }));

/** State and owner of the delegation, as `<state> <owner>`. */
export function standing(scenario: World, task = "c"): string {
  const found = findDelegation(scenario.state, scenario.tenant, task);
  if (found === undefined) return "none";
  const { task: record, state } = found;
  return `${state} ${record && delegationOf(record) ? ownerOf(record) : found.owner}`;
}
