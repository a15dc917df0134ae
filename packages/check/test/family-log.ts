/** Events of sessions, subscriptions, requests, calls and budgets, as the example logs say them. */
import type { Draft, LogBuilder } from "./log-builder.ts";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

/** `session.<name>` of agent:a. */
export function session(log: LogBuilder, name: string, id: string, fields: Fields = {}): Draft {
  const { payload, ...rest } = fields;
  return log.send(`session.${name}`, "agent:a", {
    session_id: id,
    payload: { session_id: id, ...(name === "opened" ? { version: "0.2" } : {}), ...payload },
    ...rest,
  });
}

/** The service's answer to an opening. */
export function ready(
  log: LogBuilder,
  id: string,
  capabilities: Record<string, unknown> = {},
): Draft {
  const own = { protocol: "harmovela", spec_version: "0.2", transports: ["nats"], profiles: [] };
  return log.owe(`ready:${id}`, "session.ready", {
    session_id: id,
    payload: { session_id: id, capabilities: { ...own, ...capabilities } },
  });
}

export function sessionError(log: LogBuilder, id: string, code: string): Draft {
  const error = { code, message: "no session", retryable: false };
  return log.owe(`error:${id}`, "session.error", {
    session_id: id,
    payload: { session_id: id, error },
  });
}

/** agent:a asks for events and the service names the subscription. */
export function subscribe(log: LogBuilder, id: string, sessionId?: string): void {
  const within = sessionId === undefined ? {} : { session_id: sessionId };
  const filter = { types: ["task.*"] };
  const asked = log.send("subscription.requested", "agent:a", { ...within, payload: filter });
  created(log, id, asked.id);
}

export function created(log: LogBuilder, id: string, cause: string): Draft {
  return log.owe(`created:${id}`, "subscription.created", {
    causation_id: cause,
    payload: { subscription_id: id, filter: { types: ["task.*"] }, expires_at: null },
  });
}

export function unsubscribe(log: LogBuilder, id: string): Draft {
  const payload = { subscription_id: id };
  return log.owe(`cancelled:${id}`, "subscription.cancelled", { payload });
}

/** agent:a asks agent:t; correlation c1 unless told. */
export function ask(log: LogBuilder, type: string, fields: Fields = {}): Draft {
  const { payload, ...rest } = fields;
  return log.send(type, "agent:a", {
    target: "agent:t",
    correlation_id: "c1",
    payload: { ...(type.startsWith("query") ? { query_scope: "status" } : {}), ...payload },
    ...rest,
  });
}

export function answer(
  log: LogBuilder,
  type: string,
  fields: Fields & { by?: string } = {},
): Draft {
  const { by = "agent:t", payload = {}, ...rest } = fields;
  return log.send(type, by, { correlation_id: "c1", payload, ...rest });
}

/** What the service says to a command or query by itself. */
export function settle(log: LogBuilder, type: string): Draft {
  return log.owe(`${type}:c1`, type, { correlation_id: "c1", payload: { correlation_id: "c1" } });
}

/** `tool.call.<word>` of call k1: agent:a calls tool:t. */
export function call(log: LogBuilder, word: string, by = "tool:t", fields: Fields = {}): Draft {
  const error = { code: "tool_error", message: "it broke", retryable: false };
  return log.send(`tool.call.${word}`, by, {
    ...(word === "requested" ? { target: "tool:t" } : {}),
    payload: { call_id: "k1", ...(word === "failed" ? { error } : {}) },
    ...fields,
  });
}

/** agent:a sets a limit of 10 to budget b1. */
export function budget(log: LogBuilder, name = "established", by = "agent:a", limit = 10): Draft {
  const payload = { budget_id: "b1", ...(name === "exhausted" ? {} : { limit }) };
  return log.send(`adaptation.budget.${name}`, by, { payload });
}

export function cost(log: LogBuilder, amount: number, fields: Fields = {}): Draft {
  return log.send("environment.observed", "sensor:s", {
    budget_id: "b1",
    budget_cost: amount,
    ...fields,
  });
}
