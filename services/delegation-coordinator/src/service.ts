/** The delegation coordinator: the decider of `tasks`, its reads and its settings. */
import { type Envelope, textParam, wholeParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { ReadHandler, ServiceDefinition } from "@harmovela/host";
import { createTaskDecider } from "./decider.ts";
import { DELEGATION_READS } from "./delegation-reads.ts";
import { session } from "./families/reads.ts";
import { foundTask } from "./found-task.ts";
import { history, TREE_LIMIT, task, tree } from "./reads.ts";
import { DEFAULT_TASK_SETTINGS, type TaskSettings } from "./settings.ts";
import type { TaskState } from "./state.ts";
import { issueToken } from "./tokens/issue.ts";
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
    observes: ["interruptions"],
    issueToken,
    reads: {
      ...DELEGATION_READS,
      task: (state, params, { tenant }) => foundTask(task(state, tenant, taskId(params)), params),
      tree: (state, params, { tenant }) =>
        foundTask(
          tree(state, tenant, taskId(params), { limit: limit(params) }) as JsonObject | undefined,
          params,
        ),
      history: readHistory,
      session: (state, params, { tenant }) => readSession(state, tenant, params),
      why: (state, params, { tenant, now }) =>
        foundTask(why(state, tenant, taskId(params), now), params),
    },
  };
}

/** The task's last events as logged, oldest first; `total` counts those that are too old to list. */
const readHistory: ReadHandler<TaskState> = async (state, params, { tenant, event }) => {
  const known = foundTask(history(state, tenant, taskId(params)), params);
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
  return textParam(params, "task_id");
}

function limit(params: JsonObject): number {
  return wholeParam(params, "limit", { min: 1, max: TREE_LIMIT, fallback: TREE_LIMIT });
}
