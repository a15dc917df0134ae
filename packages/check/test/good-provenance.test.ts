/** Logs of `provenance` that keep every rule. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkLog, checkLogs } from "../src/index.ts";
import { LogBuilder, streamOf } from "./log-builder.ts";
import { attest, beginAttest, observed, refuse, revoke, seen, truncate } from "./provenance-log.ts";
import { resting, SeenLogs } from "./seen-logs.ts";

const RETENTION = 30 * 86_400_000;

function clean(build: (log: LogBuilder) => void, settled = true): void {
  const log = new LogBuilder("provenance");
  build(log);
  const stream = streamOf("provenance");
  const report = checkLog(log.records(), { domain: "provenance", stream, settled });
  assert.deepEqual(report.findings, []);
  assert.equal(report.plansOpen, 0);
}

test("attested, revoked once, attested anew, by an authority revoked", () => {
  clean((log) => {
    log.epoch({ authorities: ["agent:auditor"] });
    const first = attest(log, "f");
    revoke(log, first.id);
    const second = attest(log, "f");
    revoke(log, second.id, "agent:auditor");
    attest(log, "f", "agent:w", { payload: { attestor: "agent:famous", method: "m" } });
  });
});

test("what waits is taken, refused at its time, or revoked before", () => {
  clean((log) => {
    const taken = beginAttest(log, "f");
    const refused = beginAttest(log, "g");
    const revoked = beginAttest(log, "h");
    revoke(log, revoked.id);
    seen(log, revoked);
    seen(log, taken);
    log.wait(30_000);
    refuse(log, refused);
  });
});

test("one that is refused for another reason need not have waited", () => {
  clean((log) => {
    const sent = beginAttest(log, "f");
    refuse(log, sent, {
      payload: {
        acknowledged_event_id: sent.id,
        error: { code: "protocol_error", message: "too many", retryable: false },
      },
    });
  });
});

test("truncations, each of another assertion, and where logs begin", () => {
  clean((log) => {
    observed(log, {});
    observed(log, { beliefs: 5 });
    truncate(log, "c");
    truncate(log, "d");
    observed(log, { beliefs: 6, tasks: 2 });
  });
});

test("what may be forgotten is not asked for", () => {
  clean((log) => {
    const { id } = attest(log, "f");
    log.wait(2 * RETENTION + 1);
    revoke(log, id);
    revoke(log, "of long ago");
  });
});

describe("with the logs that it has seen", () => {
  async function cleanSeen(build: (logs: SeenLogs) => void): Promise<void> {
    const logs = new SeenLogs();
    build(logs);
    assert.deepEqual(await logs.findings({ settled: true }), []);
  }

  test("counts: distinct sources, not the asserting one, not revoked, and again", () =>
    cleanSeen((logs) => {
      logs.fact("f");
      const first = logs.attest("f", 1);
      logs.attest("f", 1, "agent:a");
      logs.attest("f", 2, "agent:w");
      revoke(logs.own, first.id);
      logs.attest("f", 2);
      logs.attest("f", 2);
      logs.own.refuse("evt_refused");
      logs.attest("f", 3, "agent:x");
    }));

  test("what waited, whatever log shows it, and events of its own", () =>
    cleanSeen((logs) => {
      const sent = beginAttest(logs.own, "s");
      logs.tasks.submit("t", { id: "s" });
      seen(logs.own, sent);
      logs.attest("s", 2, "agent:w");
      logs.attest(sent.id, 1, "agent:w");
      const never = beginAttest(logs.own, "never");
      logs.own.wait(30_000);
      refuse(logs.own, never);
    }));

  test("lost evidence is told of once for each live assertion, or by its own side or a runtime", () =>
    cleanSeen((logs) => {
      logs.fact("e");
      logs.fact("f");
      logs.fact("g", resting("e", "f"));
      logs.fact("over", resting("f"));
      logs.retract("over");
      logs.fact("own", resting("f"));
      logs.fact("told", resting("f"));
      for (const [source, id] of [
        ["agent:a", "own"],
        ["runtime:main", "told"],
      ] as const) {
        const payload = { earliest_available: id, missing_from: "f", reason: "gone" };
        logs.own.send("provenance.chain.truncated", source, { causation_id: id, payload });
      }
      logs.trim();
      logs.truncate("g", "f");
      logs.fact("later");
      logs.fact("last", resting("later"));
    }));

  test("nothing is demanded where a log begins in the middle", async () => {
    const logs = new SeenLogs();
    logs.fact("f");
    logs.fact("g", resting("f"));
    logs.fact("h");
    logs.trim();
    logs.truncate("g", "f");
    logs.attest("f", undefined);
    const stored = [logs.own, logs.tasks, logs.beliefs, logs.interruptions].map((log) => {
      const from = log === logs.beliefs ? 3 : 0;
      const { domain } = log;
      const read = () => log.records().slice(from);
      return { domain, stream: streamOf(domain), lenient: from > 0, read };
    });
    const reports = await checkLogs(stored, { settled: true });
    assert.deepEqual(reports.get("provenance")?.findings, []);
  });
});
