/** What each event type's payload must look like (spec section 3). Types without a row are free. */
import type { ObjectField } from "./field.ts";
import { PROTOCOL_ROWS } from "./payload-protocol.ts";
import { SEMANTIC_ROWS } from "./payload-semantics.ts";

/** The rule of each type's payload. */
export const PAYLOAD_FIELDS: ReadonlyMap<string, ObjectField> = new Map(
  Object.entries({ ...SEMANTIC_ROWS, ...PROTOCOL_ROWS }),
);
