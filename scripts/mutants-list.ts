export interface Mutant {
  /** The fault, in words. */
  name: string;
  file: string;
  /** Stands in the file exactly once. */
  find: string;
  replace: string;
  /** Files of the default test run that must notice. */
  tests: readonly string[];
}

const HOST = "packages/host/test/host.int.test.ts";
const FAILOVER = "packages/host/test/failover.int.test.ts";
const VALIDATE = "packages/host/test/validate.test.ts";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "no expectation header: a displaced leader's appends are stored",
    file: "packages/bus/src/chain-appender.ts",
    find: "",
    replace: "",
    tests: [FAILOVER],
  },
  {
    name: "position off by one: the last message of the intake is judged again after a restart",
    file: "packages/host/src/term.ts",
    find: "      after: fold.intake,\n",
    replace: "      after: Math.max(0, fold.intake - 1),\n",
    tests: [HOST, FAILOVER],
  },
  {
    name: "position skips one: the first message after a restart is lost",
    file: "packages/host/src/term.ts",
    find: "      after: fold.intake,\n",
    replace: "      after: fold.intake + 1,\n",
    tests: [HOST, FAILOVER],
  },
  {
    name: "verdict before ack",
    file: "packages/host/src/verdicts.ts",
    find: "sender.releases.add(seq, () => {",
    replace: "sender.releases.add(0 * seq, () => {",
    tests: ["packages/host/test/releases.int.test.ts"],
  },
  {
    name: "any reply subject is answered",
    file: "packages/host/src/verdicts.ts",
    find: "if (!isUnderInbox(reply, sender.replyPrefix(about.tenant, about.source))) {",
    replace: "if (reply.length > 1_000_000) {",
    tests: [HOST],
  },
  {
    name: "a read answers any reply subject",
    file: "packages/bus/src/subjects.ts",
    find: "",
    replace: "",
    tests: [HOST],
  },
  {
    name: "a timer fires although the report in time is still unread",
    file: "packages/host/src/term.ts",
    find: "      if (!this.#obligations.workOffTimers(message.time)) return;\n",
    replace: "      if (!this.#obligations.workOffTimers(message.time + 3_600_000)) return;\n",
    tests: [HOST],
  },
  {
    name: "due timers wait behind messages that came after the due time",
    file: "packages/host/src/term.ts",
    find: "      if (!this.#obligations.workOffTimers(message.time)) return;\n",
    replace: "",
    tests: [HOST],
  },
  {
    name: "a duplicate is judged again",
    file: "packages/host/src/judge.ts",
    find: "  if (known !== undefined) {",
    replace: "  if (known !== undefined && known < 0) {",
    tests: [HOST],
  },
  {
    name: "another envelope under a known id counts as a duplicate",
    file: "packages/host/src/judge.ts",
    find: "  if (!isSameContent(envelope, entry)) {",
    replace: "  if (entry.seq < 0) {",
    tests: [HOST],
  },
  {
    name: "the subject's source is not compared with the body",
    file: "packages/host/src/validate.ts",
    find: '  if (envelope.source !== subject.source) return mismatch("source");\n',
    replace: "",
    tests: [VALIDATE],
  },
  {
    name: "a refusal before the sender is proved takes the id",
    file: "packages/host/src/validate.ts",
    find: "return refused(disagreement, envelope);",
    replace: "return refused(disagreement, envelope, true);",
    tests: [VALIDATE],
  },
  {
    name: "a foreign entry is folded",
    file: "packages/host/src/fold.ts",
    find: "      : this.epoch > 0 && entry.epoch === this.epoch;",
    replace: "      : this.epoch > 0;",
    tests: [FAILOVER],
  },
  {
    name: "a recreated stream is judged on",
    file: "packages/host/src/host.ts",
    find: "    if (differences.length > 0) {",
    replace: "    if (differences.length > 9) {",
    tests: [FAILOVER],
  },
  {
    name: "a failed append is taken for stored",
    file: "packages/host/src/log-writer.ts",
    find: "      if (!isSame(stored, written)) return false;\n",
    replace: "",
    tests: [FAILOVER],
  },
  {
    name: "a decider that throws ends the service",
    file: "packages/host/src/judge.ts",
    find: "    context.onDecideError(error);\n",
    replace: "    context.onDecideError(error);\n    if (Math.abs(1) === 1) throw error;\n",
    tests: [HOST],
  },
];
