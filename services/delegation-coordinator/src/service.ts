/** The delegation coordinator: the decider of `tasks`, its reads and its settings. */
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { ReadHandler, ServiceDefinition } from "@harmovela/host";
import { createTaskDecider } from "./decider.ts";
import { session } from "./families/reads.ts";
import { history, TREE_LIMIT, task, tree } from "./reads.ts";
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from "./settings.ts";
import type { TaskState } from "./state.ts";
import { why } from "./why.ts";

/** Everything that a process or the CLI needs to run it (`openService`). */
export function createCoordinator(
  settings: Partial<TaskSettings> = {},
): ServiceDefinition<TaskState> {
  const complete: TaskSettings = { ...DEFAULT_TASK_SETTINGS, ...settings };
  return {
    domain: "tasks",
    service: complete.service,
    decider: createTaskDecider(complete),
    settings: { ...complete },
    observes: [],
    reads: {
      task: (state, params, { tenant }) => found(task(state, tenant, taskId(params)), params),
      tree: (state, params, { tenant }) =>
        found(
          tree(state, tenant, taskId(params), { limit: limit(params) }) as JsonObject | undefined,
          params,
        ),
      history: readHistory,
      session: (state, params, { tenant }) => readSession(state, tenant, params),
      why: (state, params, { tenant, now }) =>
        found(why(state, tenant, taskId(params), now), params),
    },
  };
}

/** The task's last events as logged, oldest first; `total` counts those that are too old to list. */
const readHistory: ReadHandler<TaskState> = async (state, params, { tenant, event }) => {
  const known = found(history(state, tenant, taskId(params)), params);
  const events = await Promise.all(known.sequences.map((seq) => event(seq)));
  return {
    total: known.total,
    events: events.filter((envelope): envelope is Envelope => envelope !== undefined),
  } as unknown as JsonValue;
};

function readSession(state: TaskState, tenant: string, params: JsonObject): JsonValue {
  const id = params.session_id;
  if (typeof id !== "string" || id === "") {
    throw new HarmovelaError("invalid_query", "session_id must be a non-empty string");
  }
  const known = session(state.families, tenant, id);
  if (known !== undefined) return known;
  throw new HarmovelaError("session_error", "this tenant has no such session", {
    details: { session_id: id },
  });
}

function taskId(params: JsonObject): string {
  const id = params.task_id;
  if (typeof id === "string" && id !== "") return id;
  throw new HarmovelaError("invalid_query", "task_id must be a non-empty string");
}

function limit(params: JsonObject): number {
  const asked = params.limit ?? TREE_LIMIT;
  if (typeof asked === "number" && Number.isInteger(asked) && asked > 0 && asked <= TREE_LIMIT) {
    return asked;
  }
  throw new HarmovelaError("invalid_query", `limit must be a whole number from 1 to ${TREE_LIMIT}`);
}

function found<T>(view: T | undefined, params: JsonObject): T {
  if (view !== undefined) return view;
  throw new HarmovelaError("task_error", "this tenant has no such task", {
    details: { task_id: taskId(params) },
  });
}
