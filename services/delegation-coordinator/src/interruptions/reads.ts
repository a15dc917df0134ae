/** What reads say about the interruption of a task. */
import { formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Task } from "../state.ts";
import { INTERRUPTION_LOG } from "./state.ts";

/** Fields of the read `task`; none for a task that nobody has interrupted. */
export function interruptionView(task: Task): JsonObject {
  const { hold } = task;
  const compensation = task.tenant.compensations.get(task.id);
  const undoes: JsonObject =
    compensation === undefined ? {} : { compensation_of: compensation.original };
  if (hold === undefined || hold.state === "resumed") return undoes;
  const { id, policy, state, since, checkpoint } = hold;
  return {
    ...undoes,
    interruption: {
      id,
      policy,
      state,
      is_stopped: since !== undefined,
      ...(since === undefined
        ? {}
        : { since: `${INTERRUPTION_LOG}:${since.seq}`, stopped_at_ms: since.at }),
      ...(checkpoint === undefined ? {} : { checkpoint_id: checkpoint }),
    },
  };
}

/** Why nothing happens on a task that stands still; undefined while it may be worked on. */
export function stoppedOf({ hold }: Task): string | undefined {
  if (hold?.since === undefined) return undefined;
  const since = `is stopped since ${formatInstant(hold.since.at)} by ${hold.id} (${hold.policy})`;
  if (hold.state === "cancelled")
    return `${since}, its interruption was cancelled, waits to be cancelled`;
  const saved =
    hold.checkpoint === undefined
      ? "without a checkpoint"
      : `saved as checkpoint ${hold.checkpoint}`;
  const isToFail = hold.due.some(({ type }) => type === "task.failed");
  return isToFail
    ? `${since}, ${saved}, may be failed by the interruption manager; waits for interruption.resumed`
    : `${since}, ${saved}, waits for interruption.resumed`;
}

/** A request that its worker has not followed yet. */
export function interruptingOf({ hold }: Task): string {
  if (hold === undefined || hold.since || hold.state === "resumed") return "";
  return `, asked by ${hold.id} to stop (${hold.policy}, ${hold.state})`;
}
