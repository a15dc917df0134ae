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
const OBSERVED = "packages/host/test/observed.int.test.ts";
const DISPLACED = "packages/host/test/displaced.int.test.ts";
const SNAPSHOTS = "packages/host/test/snapshots.int.test.ts";
const CLOCK_STEPS = "packages/host/test/clock-steps.test.ts";
const SIMULATION = "test/sim/tasks.sim.test.ts";
const CONTRACT = "test/contract/bus.memory.test.ts";
const COORDINATOR = "services/delegation-coordinator";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "no expectation header: a displaced leader's appends are stored",
    file: "packages/bus/src/chain-appender.ts",
    find: "const lines = this.#expectations() + headerLines(headers);",
    replace: "const lines = headerLines(headers);",
    tests: [CONTRACT],
  },
  {
    name: "an append does not name its predecessor: a stale one fits again",
    file: "packages/bus/src/chain-appender.ts",
    find: "    if (id === undefined) return position;\n",
    replace: '    if (id !== "") return position;\n',
    tests: [CONTRACT],
  },
  {
    name: "position off by one: the last message of the intake is judged again after a restart",
    file: "packages/host/src/term.ts",
    find: "      after: fold.intake,\n",
    replace: "      after: Math.max(0, fold.intake - 1),\n",
    tests: [SIMULATION],
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
    tests: [SIMULATION],
  },
  {
    name: "a verdict goes to any reply subject",
    file: "packages/host/src/verdicts.ts",
    find: "if (!isUnderInbox(reply, sender.replyPrefix(about.tenant, about.source))) {",
    replace: "if (reply.length > 1_000_000) {",
    tests: [HOST],
  },
  {
    name: "every reply subject counts as an inbox",
    file: "packages/bus/src/subjects.ts",
    find: "export function isUnderInbox(reply: string, prefix: string): boolean {\n",
    replace:
      'export function isUnderInbox(reply: string, prefix: string): boolean {\n  if (reply.startsWith(prefix.slice(0, 1)) || reply !== "") return true;\n',
    tests: [HOST],
  },
  {
    name: "a timer fires although a report in time is still unread",
    file: "packages/host/src/term.ts",
    find: "      if (!this.#obligations.workOffTimers(arrived.at)) return;\n",
    replace: "      if (!this.#obligations.workOffTimers(arrived.at + 3_600_000)) return;\n",
    tests: [HOST],
  },
  {
    name: "due timers wait behind messages that came after the due time",
    file: "packages/host/src/term.ts",
    find: "      if (!this.#obligations.workOffTimers(arrived.at)) return;\n",
    replace: "",
    tests: [HOST],
  },
  {
    name: "the intake is not asked before an idle timer fires",
    file: "packages/host/src/intake-queue.ts",
    find: "      return lastSeq <= this.judged;\n",
    replace: "      return true;\n",
    tests: [SIMULATION],
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
    name: "a decider that throws ends the service",
    file: "packages/host/src/judge.ts",
    find: "    context.onDecideError(error);\n",
    replace: "    if (message.seq > 0) throw error;\n",
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
    name: "an entry that does not follow the one before is folded",
    file: "packages/host/src/fold.ts",
    find: "    if (frame.prev !== this.seq) return false;\n",
    replace: "",
    tests: [FAILOVER],
  },
  {
    name: "a recreated stream is judged on",
    file: "packages/host/src/same-streams.ts",
    find: "  if (streams !== undefined && state.created !== streams[which]) {",
    replace: "  if (streams !== undefined && which.length > 9) {",
    tests: [FAILOVER],
  },
  {
    name: "what is stored in the place of an append is taken for it",
    file: "packages/host/src/log-writer.ts",
    find: "      if (!isSame(stored, written)) return false;\n",
    replace: "",
    tests: [SIMULATION],
  },
  {
    name: "appends of unknown fate are not sent again",
    file: "packages/host/src/log-writer.ts",
    find: "    for (const { subject, headers, data } of lost) this.#appender.append(subject, headers, data);\n",
    replace: "",
    tests: [SIMULATION],
  },
  {
    name: "a leader does not fold to the end before it leads",
    file: "packages/host/src/host.ts",
    find: "          if (this.#fold.position >= state.lastSeq) {",
    replace: "          if (this.#fold.position >= state.lastSeq - 3) {",
    tests: [SIMULATION],
  },
  {
    name: "an idle leader never notices that it was displaced",
    file: "packages/host/src/term.ts",
    find: "    if (now - this.#lookedAt < this.#lookEveryMs) return;\n",
    replace: "    if (now >= this.#lookedAt) return;\n",
    tests: [DISPLACED],
  },
  {
    name: "an observing service judges without looking at the observed log",
    file: "packages/host/src/observed-log.ts",
    find: "    await this.foldUpTo(fold, state?.lastSeq ?? 0);",
    replace: "    await this.foldUpTo(fold, Math.max(0, (state?.lastSeq ?? 0) - 1));",
    tests: [OBSERVED],
  },
  {
    name: "root first: a cascade ends the parent before its children",
    file: `${COORDINATOR}/src/steps.ts`,
    find: "  while (at.firstLive) {\n    const child",
    replace: "  while (at.firstLive && at.depth > 1_000) {\n    const child",
    tests: [`${COORDINATOR}/test/cascade.test.ts`],
  },
  {
    name: "no gate: children are born under a parent that is being ended",
    file: `${COORDINATOR}/src/submission.ts`,
    find: "  if (plan) return settling(",
    replace: "  if (plan && parent.depth > 1_000) return settling(",
    tests: [
      `${COORDINATOR}/test/cascade.test.ts`,
      `${COORDINATOR}/test/cancel-request.test.ts`,
      `${COORDINATOR}/test/nested-plans.test.ts`,
    ],
  },
  {
    name: "a parent completes while a child runs",
    file: `${COORDINATOR}/src/decide.ts`,
    find: "  if (!isTerminal(to) || task.liveCount === 0) return { accept: envelope };",
    replace: "  if (!isTerminal(to) || task.liveCount >= 0) return { accept: envelope };",
    tests: [
      `${COORDINATOR}/test/cascade.test.ts`,
      `${COORDINATOR}/test/transitions.test.ts`,
      `${COORDINATOR}/test/ended.test.ts`,
    ],
  },
  {
    name: "an ended task takes further events",
    file: `${COORDINATOR}/src/decide.ts`,
    find: "  if (task.ended) return decideOnEnded(task, input);\n",
    replace: "",
    tests: [`${COORDINATOR}/test/ended.test.ts`, `${COORDINATOR}/test/transitions.test.ts`],
  },
  {
    name: "the producer's own cancel after a cascade is an error",
    file: `${COORDINATOR}/src/decide.ts`,
    find: "    (cause === ended.causation || cause",
    replace: '    (cause === "" || cause',
    tests: [`${COORDINATOR}/test/ended.test.ts`],
  },
  {
    name: "anybody may work on a task",
    file: `${COORDINATOR}/src/rules/authority.ts`,
    find: "      return mayWork(task, source) ? undefined : stranger(task, type, source);",
    replace:
      '      return mayWork(task, source) || source !== "" ? undefined : stranger(task, type, source);',
    tests: [`${COORDINATOR}/test/ownership.test.ts`],
  },
  {
    name: "anybody may take a task that names a target",
    file: `${COORDINATOR}/src/rules/authority.ts`,
    find: "    ? task.target === undefined || task.target === source\n    : task.owner === source;",
    replace: '    ? source !== ""\n    : task.owner === source;',
    tests: [`${COORDINATOR}/test/ownership.test.ts`],
  },
  {
    name: "a blocked task may complete",
    file: `${COORDINATOR}/src/rules/transitions.ts`,
    find: 'blocked: new Set<TaskStateName>(["started", "progress", ...ENDS_ABNORMALLY]),',
    replace:
      'blocked: new Set<TaskStateName>(["started", "progress", "completed", ...ENDS_ABNORMALLY]),',
    tests: [`${COORDINATOR}/test/transitions.test.ts`],
  },
  {
    name: "one level too deep",
    file: `${COORDINATOR}/src/submission.ts`,
    find: "  if (parent.depth + 1 > settings.maxDepth) {",
    replace: "  if (parent.depth > settings.maxDepth) {",
    tests: [`${COORDINATOR}/test/submission.test.ts`],
  },
  {
    name: "a leaf whose end is promised ends otherwise",
    file: `${COORDINATOR}/src/rules/closing.ts`,
    find: " && !task.endPromised;",
    replace: ";",
    tests: [
      `${COORDINATOR}/test/nested-plans.test.ts`,
      `${COORDINATOR}/test/cascade.test.ts`,
      `${COORDINATOR}/test/cancel-request.test.ts`,
      `${COORDINATOR}/test/tasks.prop.test.ts`,
    ],
  },
  {
    name: "cross-tenant acts need no role",
    file: "packages/envelope/src/governance.ts",
    find: '  if (own !== other && !grants(roles, CROSS_ACCESS)) return deny("tenant_access_denied");\n',
    replace: "",
    tests: [`${COORDINATOR}/test/governance.test.ts`],
  },
  {
    name: "a key that stands twice is taken",
    file: "packages/envelope/src/parse-json.ts",
    find: "  if (seen.keys !== scan.colons) return duplicateKey(text);\n",
    replace: "",
    tests: ["packages/envelope/test/parse-json.test.ts"],
  },
  {
    name: "numbers that change when read are taken",
    file: "packages/envelope/src/parse-json.ts",
    find: "  if (seen.hasUnsafeInteger && unsafeIntegerOf(text) !== undefined)",
    replace: "  if (seen.keys < 0)",
    tests: ["packages/envelope/test/parse-json.test.ts"],
  },
  {
    name: "derived ids do not depend on the tenant",
    file: "packages/envelope/src/ids.ts",
    find: "const parts = [tenant, cause, String(index)]",
    replace: "const parts = [cause, String(index)]",
    tests: ["packages/envelope/test/identity.test.ts"],
  },
  {
    name: "another process of the same agent works on a task",
    file: `${COORDINATOR}/src/rules/authority.ts`,
    find: "  if (!isElsewhere(instance, session_id)) return undefined;\n",
    replace: "  if (instance === undefined || session_id !== undefined) return undefined;\n",
    tests: [`${COORDINATOR}/test/instances.test.ts`],
  },
  {
    name: "what a lost worker was handed too late is never failed",
    file: `${COORDINATOR}/src/instances.ts`,
    find: "  if (instance.lost) state.ring.add(instance);\n",
    replace: "",
    tests: [`${COORDINATOR}/test/orphans.test.ts`],
  },
  {
    name: "check overlooks time that goes back",
    file: "packages/check/src/frame.ts",
    find: "    else if (at < this.#lastAt) {",
    replace: "    else if (at < 0) {",
    tests: ["packages/check/test/bad-logs.test.ts"],
  },
  {
    name: "ended tasks are never forgotten",
    file: `${COORDINATOR}/src/forgetting.ts`,
    find: '    if (oldest.kind === "task") forgetTask(oldest.task);\n    else ',
    replace: '    if (oldest.kind !== "task") ',
    tests: [`${COORDINATOR}/test/forgetting.test.ts`],
  },
  {
    name: "what is in use is forgotten with what is not",
    file: `${COORDINATOR}/src/families/unused.ts`,
    find: "    if (isUnused(oldest, retentionMs, at)) drop(state, oldest);\n",
    replace: "    if (oldest.due < at) drop(state, oldest);\n",
    tests: [`${COORDINATOR}/test/forgetting-families.test.ts`],
  },
  {
    name: "a plan holds on to what has ended: never forgotten while it is under way",
    file: `${COORDINATOR}/src/tasks.ts`,
    find: "    plan?.ready.delete(task);\n",
    replace: "",
    tests: [`${COORDINATOR}/test/forgetting.test.ts`],
  },
  {
    name: "check takes the id of a forgotten task for one that is used twice",
    file: "packages/check/src/tasks/forest.ts",
    find: "      if (oldest.at >= before) break;\n",
    replace: "      if (oldest.at >= 0) break;\n",
    tests: ["packages/check/test/good-forgetting.test.ts"],
  },
  {
    name: "a snapshot counts though it was not read back as it was written",
    file: "packages/host/src/snapshot/store.ts",
    find: "    if (stored === undefined || Buffer.compare(stored, data) !== 0) {\n",
    replace: "    if (stored === undefined) {\n",
    tests: [SNAPSHOTS],
  },
  {
    name: "a snapshot holds what may never be stored",
    file: "packages/host/src/snapshot/keeper.ts",
    find: "    if (!(await this.#isStored(taken.title.position))) return;\n",
    replace: "",
    tests: [SNAPSHOTS],
  },
  {
    name: "a log is trimmed below the newest snapshot: there is no second one to go back to",
    file: "packages/host/src/snapshot/store.ts",
    find: "  return snapshots.at(-2)?.title;\n",
    replace: "  return snapshots.at(-1)?.title;\n",
    tests: [SNAPSHOTS],
  },
  {
    name: "a log is trimmed whatever its observers have seen",
    file: "packages/host/src/snapshot/store.ts",
    find: "    for (const observer of observersOf(this.#domain, blobs)) {\n",
    replace: "    for (const observer of [] as Domain[]) {\n",
    tests: [SNAPSHOTS],
  },
  {
    name: "a snapshot forgets which ids are occupied",
    file: "packages/host/src/fold.ts",
    find: "    this.outcomes = new OutcomeMemory(record?.outcomes);\n",
    replace: "    this.outcomes = new OutcomeMemory();\n",
    tests: [SIMULATION],
  },
  {
    name: "a snapshot of a list in which one thing stands twice makes two of it",
    file: "packages/host/src/snapshot/graph.ts",
    find: "      this.#numbers.set(object, number);\n",
    replace: "",
    tests: ["packages/host/test/graph.test.ts"],
  },
  {
    name: "time stands still when the broker's clock is set back",
    file: "packages/host/src/broker-time.ts",
    find: "      this.#setBackMs = instant - time;\n      // What has",
    replace: "      // What has",
    tests: ["packages/host/test/broker-time.test.ts"],
  },
  {
    name: "a broker's clock that was set back makes timers early",
    file: "packages/host/src/broker-time.ts",
    find: "      this.#offset = instant - this.#clock.monotonic();\n",
    replace: "",
    tests: [CLOCK_STEPS],
  },
  {
    name: "a lease whose holder is gone lasts as long as the server's clock is behind",
    file: "packages/bus/src/lease-keeper.ts",
    find: "        this.#isAbandoned(entry.revision);\n",
    replace: "        false;\n",
    tests: ["packages/bus/test/lease-keeper.test.ts"],
  },
  {
    name: "a burst of laborious envelopes is validated in one go",
    file: "packages/host/src/intake-queue.ts",
    find: "const VALIDATING_MS_MAX = 50;",
    replace: "const VALIDATING_MS_MAX = 5_000;",
    tests: ["packages/host/test/intake-queue.test.ts"],
  },
  {
    name: "snapshots take a fifth of the time",
    file: "packages/host/src/snapshot/keeper.ts",
    find: "const PAUSE_SHARE = 50;",
    replace: "const PAUSE_SHARE = 5;",
    tests: ["packages/host/test/snapshot-pace.test.ts"],
  },
  {
    name: "a token is recorded while a snapshot is written down",
    file: "packages/host/src/term.ts",
    find: "    this.#frozen = keeping;\n",
    replace: "",
    tests: ["packages/host/test/snapshot-pace.test.ts"],
  },
];
