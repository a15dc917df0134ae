/** Every rule has logs that break it; the checker names rule and entry, and nothing else. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog, RULES, type RuleId } from "../src/index.ts";
import { badBeliefs } from "./bad-beliefs.ts";
import { badDelegatedTasks } from "./bad-delegated-tasks.ts";
import { badDelegations } from "./bad-delegations.ts";
import { badEvents } from "./bad-events.ts";
import { badExchanges } from "./bad-exchanges.ts";
import { badForgetting } from "./bad-forgetting.ts";
import { badFrames } from "./bad-frames.ts";
import { badInstances } from "./bad-instances.ts";
import { badPlans } from "./bad-plans.ts";
import { badProvenance } from "./bad-provenance.ts";
import { badSeen } from "./bad-seen.ts";
import { badSessions } from "./bad-sessions.ts";
import { badStoppedTasks } from "./bad-stopped-tasks.ts";
import { badStops } from "./bad-stops.ts";
import { badTasks } from "./bad-tasks.ts";
import { badTokens } from "./bad-tokens.ts";
import { badTrees } from "./bad-trees.ts";
import { LogBuilder, streamOf } from "./log-builder.ts";
import { SeenLogs } from "./seen-logs.ts";
import { TwoLogs } from "./stop-log.ts";

const badLogs = [
  ...badFrames,
  ...badEvents,
  ...badPlans,
  ...badTasks,
  ...badDelegatedTasks,
  ...badDelegations,
  ...badTokens,
  ...badInstances,
  ...badSessions,
  ...badExchanges,
  ...badForgetting,
  ...badBeliefs,
  ...badProvenance,
];

const badTwoLogs = [...badStops, ...badTrees, ...badStoppedTasks];

describe("a bad log is named", () => {
  for (const { rule, why, also = [], options, build } of badLogs) {
    it(`${rule}: ${why}`, () => {
      const { domain = "tasks" } = options ?? {};
      const log = new LogBuilder(domain);
      const seq = build(log);
      const stream = streamOf(domain);
      const report = checkLog(log.records(), { domain, stream, ...options });
      const named = report.findings.map((finding) => `${finding.rule}@${finding.seq}`);
      assert.ok(named.includes(`${rule}@${seq}`), `wanted ${rule}@${seq}, found ${named}`);
      const allowed = new Set<RuleId>([rule, ...also]);
      const others = report.findings.filter((finding) => !allowed.has(finding.rule));
      assert.deepEqual(others, []);
    });
  }

  for (const { rule, why, in: shownIn, isSettled = false, build } of badTwoLogs) {
    it(`${rule}: ${why} (two logs)`, async () => {
      const logs = new TwoLogs();
      const seq = build(logs);
      const { tasks, stops } = await logs.check({ settled: isSettled });
      const shown = shownIn === "tasks" ? tasks : stops;
      const named = shown.findings.map((finding) => `${finding.rule}@${finding.seq}`);
      assert.ok(named.includes(`${rule}@${seq}`), `wanted ${rule}@${seq}, found ${named}`);
      const all = [...tasks.findings, ...stops.findings];
      assert.deepEqual(
        all.filter((finding) => finding.rule !== rule),
        [],
      );
    });
  }

  for (const { rule, why, isSettled = false, build } of badSeen) {
    it(`${rule}: ${why} (four logs)`, async () => {
      const logs = new SeenLogs();
      const seq = build(logs);
      assert.deepEqual(await logs.findings({ settled: isSettled }), [`${rule}@${seq}`]);
    });
  }

  it("for every rule there is", () => {
    const broken = new Set<string>([...badLogs, ...badTwoLogs, ...badSeen].map(({ rule }) => rule));
    assert.deepEqual(
      Object.keys(RULES).filter((rule) => !broken.has(rule)),
      [],
    );
  });
});
