import type { CheckOptions, RuleId } from "../src/index.ts";
import type { LogBuilder } from "./log-builder.ts";

/** A log that breaks a rule, and where it shows. */
export interface BadLog {
  rule: RuleId;
  why: string;
  /** Rules that this fault cannot help to break as well. */
  also?: RuleId[];
  options?: Partial<CheckOptions>;
  /** Writes the log; the sequence of the entry that must be named. */
  build(log: LogBuilder): number;
}
