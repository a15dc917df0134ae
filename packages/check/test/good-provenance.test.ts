/** Logs of `provenance` that keep every rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkLog } from "../src/index.ts";
import { LogBuilder, streamOf } from "./log-builder.ts";
import { attest, beginAttest, observed, refuse, revoke, seen, truncate } from "./provenance-log.ts";

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
