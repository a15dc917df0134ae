import { intakeTarget } from "./intake.ts";
import { keyTarget } from "./key-target.ts";
import { readTarget } from "./read-target.ts";
import { subjectTarget } from "./subject-target.ts";
import type { Target } from "./target.ts";

/** Everything that is fuzzed. */
export const TARGETS: readonly Target[] = [intakeTarget, subjectTarget, keyTarget, readTarget];
