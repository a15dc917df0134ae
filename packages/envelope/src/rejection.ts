/** In which words a refusal is said (spec 3.2, 5.2, 5.9, 9.2). */
import type { RejectionType } from "./judging.ts";

/** Requests of these families are refused with a word of their own. */
const TYPES: ReadonlyMap<string, RejectionType> = new Map([
  ["subscription.requested", "subscription.rejected"],
  ["command.requested", "command.rejected"],
  ["query.requested", "query.rejected"],
]);

/** The type of the event that refuses an envelope of this type: of a request that of its family. */
export function rejectionTypeOf(type: string): RejectionType {
  return TYPES.get(type) ?? "event.rejected";
}
