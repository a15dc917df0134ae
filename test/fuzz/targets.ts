import { intakeTarget } from "./intake.ts";
import type { Target } from "./target.ts";

/** Everything that is fuzzed. */
export const TARGETS: readonly Target[] = [intakeTarget];
