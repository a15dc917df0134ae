import { textParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

/** What a read found; there may be nothing of that id. */
export function foundTask<T>(view: T | undefined, params: JsonObject): T {
  if (view !== undefined) return view;
  throw new HarmovelaError("task_error", "this tenant has no such task", {
    details: { task_id: textParam(params, "task_id") },
  });
}
