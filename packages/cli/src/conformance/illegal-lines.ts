/**
 * Lines that the specification calls illegal, for strict runs: what the manifest says
 * (`illegal_lines`), else what the specification says about the public suite (spec 10.4).
 */
import { posix } from "node:path";
import type { Fixture } from "./manifest.ts";

const PUBLIC_SUITE: Readonly<Record<string, readonly number[]>> = {
  "negative.ndjson": [1, 2, 3],
  "reject-unknown-events.ndjson": [1, 2],
  "reject-some-protocol.ndjson": [1],
  "reject-some-payload.ndjson": [1],
  "governance-contract.ndjson": [2, 3],
  "tenant-isolation-negative.ndjson": [1, 2, 3],
  "task-invalid-transitions.ndjson": [2],
  "delegation-negative.ndjson": [6, 11],
  "command-negative.ndjson": [1, 2, 3],
  "query-negative.ndjson": [1, 2, 3],
  "adaptation-negative.ndjson": [2],
  "parent-child-negative.ndjson": [7],
};

/** Numbers from 1; none for a file that holds nothing illegal or that nobody has read. */
export function illegalLinesOf({ path, illegalLines }: Fixture): readonly number[] {
  return illegalLines ?? PUBLIC_SUITE[posix.basename(path)] ?? [];
}
