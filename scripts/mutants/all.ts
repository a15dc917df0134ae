/** Every deliberate fault. */
import { FOUNDATION_MUTANTS } from "./foundation.ts";
import { HOSTILE_MUTANTS } from "./hostile.ts";
import type { Mutant } from "./mutant.ts";
import { PROOF_MUTANTS } from "./proofs.ts";
import { PROVENANCE_MUTANTS } from "./provenance.ts";
import { REPLAY_MUTANTS } from "./replay.ts";
import { RIGHTS_MUTANTS } from "./rights.ts";
import { TENANT_MUTANTS } from "./tenants.ts";

export const ALL_MUTANTS: readonly Mutant[] = [
  ...FOUNDATION_MUTANTS,
  ...PROVENANCE_MUTANTS,
  ...PROOF_MUTANTS,
  ...RIGHTS_MUTANTS,
  ...HOSTILE_MUTANTS,
  ...REPLAY_MUTANTS,
  ...TENANT_MUTANTS,
];
