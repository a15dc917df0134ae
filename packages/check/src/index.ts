export {
  type Checker,
  type CheckOptions,
  checkLog,
  createChecker,
  type Observed,
} from "./checker.ts";
export type { Finding } from "./finding.ts";
export { formatRecord, parseRecord, recordOf, type StoredRecord } from "./record.ts";
export type { Report } from "./report.ts";
export { RULES, type RuleId } from "./rules-table.ts";
export { checkLogs, type LogToCheck } from "./together.ts";
