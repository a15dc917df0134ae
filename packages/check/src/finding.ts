import type { RuleId } from "./rules-table.ts";

/** A rule that an entry breaks. */
export interface Finding {
  rule: RuleId;
  /** Stream sequence of the entry at which it shows; of a plan that never ends, where it began. */
  seq: number;
  subject: string;
  message: string;
  taskId?: string;
}

const NONE: Finding[] = [];

/** Collects findings: all of them for the entry at hand, a bounded number for the report. */
export class FindingSink {
  readonly kept: Finding[] = [];
  readonly byRule = new Map<RuleId, number>();
  beyond = 0;
  readonly #limit: number;
  #seq = 0;
  #subject = "";
  #current: Finding[] = NONE;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** From here on findings are about this entry. */
  at(seq: number, subject: string): void {
    this.#seq = seq;
    this.#subject = subject;
    this.#current = NONE;
  }

  add(rule: RuleId, message: string, taskId?: string): void {
    const finding: Finding = { rule, seq: this.#seq, subject: this.#subject, message };
    if (taskId !== undefined) finding.taskId = taskId;
    if (this.#current === NONE) this.#current = [];
    this.#current.push(finding);
    this.byRule.set(rule, (this.byRule.get(rule) ?? 0) + 1);
    if (this.kept.length < this.#limit) this.kept.push(finding);
    else this.beyond += 1;
  }

  /** The findings since `at`. */
  get current(): Finding[] {
    return this.#current === NONE ? [] : this.#current;
  }
}
