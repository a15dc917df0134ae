/** How much one source may have judged, before anything of it is parsed (architecture, section 4). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { intakeSubject, type StoredMessage } from "@harmovela/bus";
import { type SourceLimits, SourceRate } from "../src/source-rate.ts";

const T0 = 1_764_500_000_000;
const LIMITS: SourceLimits = { messagesPerSecond: 10, bytesPerSecond: 1_000 };
/** Ten seconds of it. */
const BURST = 100;

interface Said {
  at?: number;
  bytes?: number;
  tenant?: string;
  source?: string;
}

let seq = 0;
function said({
  at = 0,
  bytes = 1,
  tenant = "acme",
  source = "agent:a",
}: Said = {}): StoredMessage {
  seq += 1;
  const subject = intakeSubject({ tenant, domain: "tasks", source, type: "task.progress" });
  return { seq, time: T0 + at, subject, data: new Uint8Array(bytes), header: () => "" };
}

function rateOf(limits: SourceLimits = LIMITS) {
  const over: string[] = [];
  const rate = new SourceRate(limits, (tenant, source) => over.push(`${tenant} ${source}`));
  const takes = (what: Said = {}): boolean => rate.refusalOf(said(what)) === undefined;
  const taken = (count: number, what: Said = {}): number =>
    Array.from({ length: count }, () => takes(what)).filter((isTaken) => isTaken).length;
  return { rate, over, takes, taken };
}

describe("messages", () => {
  test("a burst passes, the next one is refused unread, as something to send again", () => {
    const { rate, taken } = rateOf();
    assert.equal(taken(BURST), BURST);
    const message = said();
    const refused = rate.refusalOf(message);
    assert.ok(refused?.isLimited);
    assert.equal(refused.isOccupying, false);
    assert.equal(refused.sent, undefined);
    const { code, retryable, details = {} } = refused.error;
    assert.equal(code, "internal_error");
    assert.equal(retryable, true);
    assert.equal(details.reason, "rate_limited");
    assert.equal(details.intake, message.seq);
    assert.equal(details.retry_after_ms, 100);
    assert.equal((details.failure as { category?: string }).category, "dependency");
  });

  test("after the time that it was told it is heard again, and not a moment earlier", () => {
    const { takes, taken } = rateOf();
    taken(BURST);
    assert.equal(takes({ at: 99 }), false);
    assert.equal(takes({ at: 100 }), true);
    assert.equal(takes({ at: 100 }), false);
    assert.equal(taken(BURST, { at: 1_100 }), 10);
    assert.equal(taken(2 * BURST, { at: 60_000 }), BURST);
  });

  test("a flood takes nothing away: what passes is the rate, however much is refused", () => {
    const { taken } = rateOf();
    taken(BURST);
    let passed = 0;
    for (let at = 0; at < 10_000; at += 10) passed += taken(20, { at });
    assert.ok(passed >= 98 && passed <= 100, `${passed}`);
  });

  test("each source of each tenant has its own", () => {
    const { takes, taken } = rateOf();
    taken(BURST + 1);
    assert.equal(takes(), false);
    assert.equal(takes({ source: "agent:b" }), true);
    assert.equal(takes({ tenant: "beta" }), true);
  });

  test("what was sent slowly is not limited, however fast it is judged afterwards", () => {
    const { takes } = rateOf();
    for (let at = 0; at < 60_000; at += 101) assert.equal(takes({ at }), true, `${at}`);
  });

  test("a clock that is set back takes nothing and gives nothing", () => {
    const { takes, taken } = rateOf();
    taken(BURST, { at: 5_000 });
    assert.equal(takes({ at: 0 }), false);
    assert.equal(takes({ at: 5_099 }), false);
    assert.equal(takes({ at: 5_100 }), true);
  });
});

describe("bytes", () => {
  test("they have a budget of their own", () => {
    const { rate, takes, taken } = rateOf();
    assert.equal(taken(20, { bytes: 1_000 }), 10);
    assert.equal(rate.refusalOf(said({ bytes: 500 }))?.error.details?.retry_after_ms, 500);
    assert.equal(takes({ bytes: 0 }), true);
    assert.equal(takes({ bytes: 500, at: 500 }), true);
  });

  test("what is larger than the whole budget waits until that is full", () => {
    const { takes } = rateOf();
    assert.equal(takes({ bytes: 50_000 }), true);
    assert.equal(takes({ bytes: 1, at: 49_000 }), true);
    assert.equal(takes({ bytes: 50_000, at: 49_000 }), false);
    assert.equal(takes({ bytes: 50_000, at: 60_000 }), true);
  });
});

test("services are not limited, and who cannot be answered is dropped elsewhere", () => {
  const { rate, taken } = rateOf();
  assert.equal(taken(2 * BURST, { source: "service:interruption-manager" }), 2 * BURST);
  for (const subject of ["hv.acme.in.tasks.-.task.progress", "x", "hv.acme.in.tasks.%2a.x"]) {
    assert.equal(rate.refusalOf({ ...said(), subject }), undefined);
  }
  assert.equal(rate.sources, 0);
});

test("no limit is no limit", () => {
  const { taken } = rateOf({ messagesPerSecond: 0, bytesPerSecond: 0 });
  assert.equal(taken(50_000, { bytes: 1_000 }), 50_000);
});

test("it is told once that a source is over, and again after its budget was full", () => {
  const { over, taken } = rateOf();
  taken(BURST + 5);
  taken(5, { at: 2_000 });
  taken(50, { at: 4_000 });
  assert.deepEqual(over, ["acme agent:a"]);
  taken(BURST + 1, { at: 60_000 });
  assert.equal(over.length, 2);
});

test("as many sources as there may be are remembered; the longest silent one goes first", () => {
  const { rate, takes, taken } = rateOf();
  taken(BURST, { source: "agent:flood" });
  taken(BURST, { source: "agent:old" });
  for (let index = 0; index < 30_000; index += 1) {
    takes({ source: `agent:${index}` });
    if (index % 100 === 0) assert.equal(takes({ source: "agent:flood" }), false, `${index}`);
  }
  assert.equal(rate.sources, 10_000);
  assert.equal(takes({ source: "agent:old" }), true);
});
