import type { Finding } from "./finding.ts";
import type { RuleId } from "./rules-table.ts";

/** What a log holds and what is wrong with it. */
export interface Report {
  /** Stored messages read, foreign ones included. */
  entries: number;
  /** Messages without a valid `Hv-Epoch`: skipped by every fold, and here. */
  foreign: number;
  /** Event entries, refusals included. */
  events: number;
  refusals: number;
  /** Control entries by kind. */
  control: Record<string, number>;
  tenants: number;
  tasks: number;
  liveTasks: number;
  interruptions: number;
  /** Neither resumed nor cancelled. */
  openInterruptions: number;
  plansBegun: number;
  plansDischarged: number;
  plansOpen: number;
  lastSeq: number;
  /** In log order, bounded. */
  findings: Finding[];
  /** Findings beyond the bound. */
  findingsBeyond: number;
  /** All findings, those beyond the bound included. */
  findingsByRule: Partial<Record<RuleId, number>>;
}
