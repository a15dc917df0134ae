/** The reads `delegation`, `owner`, `children` and `list` (`hv.<tenant>.rpc.<source>.tasks.*`). */
import { optionalTextParam, textParam, wholeParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { ReadHandler } from "@harmovela/host";
import {
  children,
  delegation,
  type ListFilter,
  list,
  owner,
  PAGE_LIMIT,
  type Page,
} from "./delegation/reads.ts";
import { foundTask } from "./found-task.ts";
import { isTaskStateName } from "./rules/transitions.ts";
import { findTask, type TaskState } from "./state.ts";

export const DELEGATION_READS: Readonly<Record<string, ReadHandler<TaskState>>> = {
  delegation: (state, params, { tenant }) =>
    foundTask(delegation(state, tenant, textParam(params, "task_id")), params),
  owner: (state, params, { tenant }) =>
    foundTask(owner(state, tenant, textParam(params, "task_id")), params),
  children: (state, params, { tenant }) => {
    const id = textParam(params, "task_id");
    foundTask(findTask(state, tenant, id), params);
    return pageOf(children(state, tenant, id, pagingIn(params)));
  },
  list: (state, params, { tenant, now }) =>
    pageOf(list(state, tenant, filterIn(params), pagingIn(params), now)),
};

function pagingIn(params: JsonObject): { limit: number; after: string | undefined } {
  return {
    limit: wholeParam(params, "limit", { min: 1, max: PAGE_LIMIT, fallback: PAGE_LIMIT }),
    after: optionalTextParam(params, "after"),
  };
}

function filterIn(params: JsonObject): ListFilter {
  const state = optionalTextParam(params, "state");
  if (state !== undefined && state !== "live" && !isTaskStateName(state)) {
    throw new HarmovelaError("invalid_query", 'state must be "live" or the name of a task state');
  }
  return {
    state,
    agent: optionalTextParam(params, "agent"),
    silentMs: wholeParam(params, "silent_ms", {
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      fallback: undefined,
    }),
  };
}

function pageOf(page: Page | undefined): JsonValue {
  if (page !== undefined) return page as unknown as JsonObject;
  throw new HarmovelaError("invalid_query", "there is no task `after` to go on behind");
}
