import { payloadField, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import type { Delegation } from "./delegation.ts";

/** The service rejects an offer that nobody accepted in time, and nothing else (spec 5.6). */
export function checkExpiry(
  { sink }: TaskContext,
  { envelope, frame }: TaskEvent,
  { id, deadline, isAdopted }: Delegation,
): void {
  if (payloadField(envelope, "reason") !== "deadline_expired") {
    sink.add("expiry-reason", `the offer of ${id} expires for another reason`, id);
  }
  if (isAdopted) return;
  if (deadline === undefined) {
    sink.add("expiry-early", `the offer of ${id} has no deadline`, id);
  } else if (frame.at < deadline) {
    const message = `the offer of ${id} expires at ${frame.at}, it is due at ${deadline}`;
    sink.add("expiry-early", message, id);
  }
}
