/** Claims, what rests on them and how long they hold, kept by every rule: the checker finds nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatInstant } from "@harmovela/envelope";
import { checkLog } from "../src/index.ts";
import {
  beginRetract,
  changeWindow,
  claim,
  conclude,
  conflict,
  expire,
  mark,
  markLost,
  resolve,
  retract,
  retraction,
  say,
} from "./belief-log.ts";
import { clean } from "./clean.ts";
import { type Draft, LogBuilder, streamOf } from "./log-builder.ts";

const DAY = 86_400_000;
const A = { source: "agent:a", value: 1 };
const B = { source: "agent:b", value: 2 };
const C = { source: "agent:c", value: 3 };

const newLog = (): LogBuilder => new LogBuilder("beliefs");

describe("a good log of conflicts", () => {
  it("each distinct one once, and again when it has been over", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1, { confidence: 0.95 });
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [{ ...A, confidence: 0.95 }, B]);
    claim(log, "f", "agent:b", 2);
    claim(log, "f", "agent:c", 3);
    conflict(log, "memory:f", [A, B, C]);
    retract(log, "f", "agent:c");
    claim(log, "f", "agent:b", 1);
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [A, B]);
    claim(log, "f", "agent:c", 3);
    conflict(log, "memory:f", [A, B, C]);
    clean(log);
  });

  it("between snapshots of a context, which go by their own id where they name no key", () => {
    const log = newLog();
    const ready = (source: string, payload: Record<string, unknown>): void => {
      say(log, "context.snapshot.ready", source, { payload });
    };
    ready("agent:a", { snapshot_id: "s", data: 1 });
    ready("agent:b", { snapshot_id: "s", data: 2 });
    conflict(log, "context:s", [A, B]);
    ready("agent:a", { snapshot_id: "s1", context_key: "k", data: 1 });
    ready("agent:b", { snapshot_id: "s2", context_key: "k", data: 2 });
    conflict(log, "context:k", [A, B]);
    clean(log);
  });

  it("none between the same source, equal values, other subjects, and times that do not meet", () => {
    const log = newLog();
    const noon = formatInstant(log.at + 60_000);
    claim(log, "f", "agent:a", 1);
    claim(log, "f", "agent:a", 2);
    claim(log, "g", "agent:a", { x: 1, y: 0 });
    claim(log, "g", "agent:b", { y: -0, x: 1 });
    claim(log, "h", "agent:a", 1, { valid_until: noon });
    claim(log, "h", "agent:b", 2, { valid_from: noon });
    log.tenant = "beta";
    claim(log, "f", "agent:b", 3);
    clean(log);
  });

  it("a revision settles one, whatever its claims still say; an agent's own report binds nobody", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1);
    const other = claim(log, "f", "agent:b", 2);
    conclude(log, "agent:c", [other]);
    say(log, "belief.conflict.detected", "agent:d", {
      belief_status: "contradicted",
      payload: { subject: "memory:f", claims: [A, C] },
    });
    clean(log);
  });

  it("one that has ended is called resolved, and may come back", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1);
    const other = claim(log, "f", "agent:b", 2);
    const first = conflict(log, "memory:f", [A, B]);
    say(log, "belief.revised", "agent:b", {
      causation_id: other.id,
      payload: { previous: "2", corrected: "1" },
    });
    resolve(log, first);
    claim(log, "f", "agent:b", 2);
    const second = conflict(log, "memory:f", [A, B]);
    retract(log, "f", "agent:a");
    resolve(log, second);
    clean(log);
  });

  it("of many claims some are listed; with others in it, it is another conflict", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1);
    claim(log, "f", "agent:b", 2);
    claim(log, "f", "agent:c", 3);
    const fields = (count: number) => ({
      payload: { subject: "memory:f", claims: [A, B], claim_count: count },
    });
    conflict(log, "memory:f", [], fields(3));
    retract(log, "f", "agent:c");
    claim(log, "f", "agent:d", 4);
    conflict(log, "memory:f", [], fields(3));
    claim(log, "f", "agent:c", 3);
    conflict(log, "memory:f", [], fields(4));
    clean(log);
  });

  it("an update without a value leaves it as it is", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1);
    const payload = { fact_id: "f", reason: "checked again" };
    say(log, "memory.fact.updated", "agent:a", { payload });
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [A, B]);
    clean(log);
  });

  it("a hundred sources that agree but for one", () => {
    const log = newLog();
    const claims: { source: string; value: number }[] = [];
    for (let at = 0; at < 100; at += 1) {
      claims.push({ source: `agent:${at}`, value: at === 50 ? 2 : 1 });
      claim(log, "f", `agent:${at}`, at === 50 ? 2 : 1);
    }
    conflict(log, "memory:f", claims.slice(48, 53));
    clean(log);
  });
});

describe("a good log of dependents", () => {
  it("a diamond and a cycle, each marked once in the plan", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1);
    const left = conclude(log, "agent:a", [fact]);
    const back = { source: "agent:c", id: "evt_foot" };
    const chain = { evidence_chain: [{ source: "memory:main", id: fact.id }, back] };
    const right = claim(log, "right", "agent:b", 1, chain);
    conclude(log, "agent:c", [left, right], { id: "evt_foot" });
    conclude(log, "agent:d", []);
    const plan = beginRetract(log, "f", "memory:main");
    mark(log, plan, left.id);
    mark(log, plan, "memory:right");
    mark(log, plan, "evt_foot");
    log.finish(plan);
    clean(log);
  });

  it("what arrives later is marked at once, what is said anew is clean, what is withdrawn needs nothing", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1);
    const cites = { evidence_chain: [{ source: "memory:main", id: fact.id }] };
    claim(log, "gone", "agent:a", 1, cites);
    retract(log, "gone", "agent:a");
    claim(log, "anew", "agent:a", 1, cites);
    claim(log, "anew", "agent:a", 1);
    const gone = retract(log, "f", "memory:main");
    claim(log, "late", "agent:b", 1, cites);
    mark(log, gone, "memory:late");
    claim(log, "late", "agent:b", 1);
    claim(log, "f", "memory:main", 2);
    clean(log);
  });

  it("a mark may be what a plan of the service ends with", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1);
    const gone = retract(log, "f", "memory:main");
    const first = conclude(log, "agent:a", [fact]);
    const second = conclude(log, "agent:b", [first]);
    const own = log.draft("state.invalidated", "service:belief-tracker", {
      id: log.derivedId(),
      belief_status: "unknown",
      causation_id: gone.id,
      payload: { resource: first.id, depends_on: fact.id },
    });
    log.begin(own, `owed:${own.id}`);
    mark(log, { ...gone }, second.id);
    log.finish(own);
    clean(log);
  });

  it("what only reads as withdrawn marks nothing; evidence nobody logged may be retracted too", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1);
    conclude(log, "agent:a", [fact]);
    say(log, "memory.fact.invalidated", "memory:main", { payload: { fact_id: "f" } });
    const seen = { evidence_chain: [{ source: "sensor:s", id: "evt_elsewhere" }] };
    const drawn = claim(log, "g", "agent:a", 1, seen);
    const fields = retraction("unheard", { causation_id: "evt_elsewhere" });
    const gone = say(log, "memory.fact.invalidated", "sensor:s", fields);
    mark(log, gone, "memory:g", { payload: { resource: "memory:g", depends_on: drawn.id } });
    clean(log);
  });

  it("what ended in favour of something is in doubt when that falls; what was taken back early is", () => {
    const log = newLog();
    const old = claim(log, "old", "agent:a", 1);
    const fresh = claim(log, "fresh", "memory:main", 2);
    const replaced = { payload: { fact_id: "old", replaced_by: fresh.id } };
    say(log, "memory.fact.invalidated", "agent:a", replaced);
    const gone = retract(log, "fresh", "memory:main");
    const named = { resource: "memory:old", event_id: old.id, depends_on: [fresh.id] };
    mark(log, gone, "memory:old", { payload: named });
    retract(log, "late", "memory:main", { causation_id: "evt_late" });
    claim(log, "late", "memory:main", 1, { id: "evt_late", stale_after: "PT0S" });
    clean(log);
  });

  it("an obligation that failed excuses what was owed", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1, { stale_after: "PT1S" });
    conclude(log, "agent:a", [fact]);
    retract(log, "f", "memory:main");
    const body = { id: log.derivedId(), reason: "too large" };
    log.push({ cause: `owed:${body.id}`, kind: "obligation_failed", body });
    clean(log);
  });

  it("what rests on lost evidence is marked because of an entry in the log of provenance", () => {
    const log = newLog();
    const drawn = conclude(log, "agent:a", [claim(log, "f", "memory:main", 1)]);
    markLost(log, drawn);
    const again = conclude(log, "agent:a", [drawn]);
    markLost(log, again);
    retract(log, "f", "memory:main");
    clean(log);
  });

  it("20 thousand conclusions in a chain", () => {
    const log = newLog();
    let last: Draft = claim(log, "f", "memory:main", 1);
    const drawn = Array.from({ length: 20_000 }, (_, at) => {
      last = conclude(log, `agent:${at % 2}`, [last]);
      return last;
    });
    const plan = beginRetract(log, "f", "memory:main");
    for (const { id } of drawn) mark(log, plan, id);
    log.finish(plan);
    clean(log);
  });
});

describe("a good log of windows", () => {
  it("the earliest end governs, a change moves it, a late change does not", () => {
    const log = newLog();
    const start = log.at;
    const bounds = { valid_until: formatInstant(start + 60_000), stale_after: "PT10S" };
    const fact = claim(log, "f", "memory:main", 1, bounds);
    const older = { created_at: formatInstant(start + 1_000) };
    log.wait(2_000);
    changeWindow(log, "memory:main", "memory:f", start + 5_000);
    changeWindow(log, "memory:main", "memory:f", start + 3_000, older);
    log.wait(3_000);
    expire(log, fact, "memory:f", start + 5_000);
    changeWindow(log, "memory:main", "memory:f", start + 8_000);
    log.wait(3_000);
    expire(log, fact, "memory:f", start + 8_000);
    changeWindow(log, "memory:main", "memory:f", start + 7_000);
    expire(log, fact, "memory:f", start + 7_000);
    clean(log);
  });

  it("what was stale on arrival expires at once; zero is stale at once; months follow the calendar", () => {
    const log = newLog();
    const fact = claim(log, "f", "memory:main", 1, { valid_until: "2020-02-29T00:00:00Z" });
    expire(log, fact, "memory:f", Date.UTC(2020, 1, 29));
    const zero = claim(log, "g", "memory:main", 1, { stale_after: "PT0S" });
    expire(log, zero, "memory:g", log.at);
    const month = { created_at: "2027-01-31T00:00:00Z", stale_after: "P1M" };
    const third = claim(log, "h", "memory:main", 1, month);
    log.wait(60 * DAY);
    expire(log, third, "memory:h", Date.UTC(2027, 1, 28));
    clean(log);
  });

  it("of two sources that end together, and of what has no key", () => {
    const log = newLog();
    const end = log.at + 1_000;
    const until = { valid_until: formatInstant(end) };
    const one = claim(log, "f", "agent:a", 1, until);
    const other = claim(log, "f", "agent:b", 1, until);
    const episode = say(log, "memory.episode.stored", "agent:b", until);
    log.wait(1_000);
    expire(log, one, "memory:f", end);
    claim(log, "f", "agent:c", 1, until);
    changeWindow(log, "agent:b", "memory:f", end + 5_000);
    changeWindow(log, "agent:b", "memory:f", end);
    expire(log, other, "memory:f", end);
    expire(log, episode, `belief:${episode.id}`, end);
    clean(log);
  });

  it("no end, or one to come, or of a claim that is gone, or that an observer has noticed", () => {
    const log = newLog();
    const second = { stale_after: "PT1S" };
    claim(log, "f", "memory:main", 1);
    claim(log, "g", "memory:main", 1, { stale_after: "P1Y" });
    claim(log, "h", "memory:main", 1, second);
    retract(log, "h", "memory:main");
    claim(log, "i", "memory:main", 1, second);
    claim(log, "i", "memory:main", 2);
    claim(log, "j", "memory:main", 1, second);
    log.wait(5_000);
    say(log, "freshness.expired", "runtime:main", { payload: { resource: "memory:j" } });
    clean(log);
  });

  it("a window is changed by its source, or by the system that keeps it", () => {
    const log = newLog();
    claim(log, "f", "agent:a", 1, { stale_after: "PT1S" });
    changeWindow(log, "memory:main", "memory:f", log.at + 60_000);
    changeWindow(log, "agent:a", "memory:f", log.at + 500);
    changeWindow(log, "agent:a", "memory:unheard", log.at + 500);
    log.wait(400);
    clean(log);
  });

  it("what was replaced long ago is let go of, and may come back", () => {
    const log = newLog();
    const first = claim(log, "f", "memory:main", 1);
    claim(log, "f", "memory:main", 2);
    log.wait(61 * DAY);
    claim(log, "g", "agent:a", 1, { evidence_chain: [{ source: "memory:main", id: first.id }] });
    retract(log, "f", "memory:main");
    clean(log);
  });
});

describe("a log of beliefs that begins in the middle", () => {
  it("is read leniently", () => {
    const log = newLog();
    const until = formatInstant(log.at + 1_000);
    const fact = claim(log, "f", "agent:a", 1, { valid_until: until });
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [A, B]);
    const drawn = conclude(log, "agent:c", [fact]);
    changeWindow(log, "agent:a", "memory:f", log.at + 500);
    log.wait(500);
    expire(log, fact, "memory:f", log.at);
    const plan = beginRetract(log, "f", "agent:a");
    mark(log, plan, drawn.id);
    log.finish(plan);
    const records = log.records();
    // A plan whose beginning is cut off is none.
    for (let cut = 1; cut < records.length - 2; cut += 1) {
      const options = { domain: "beliefs", stream: streamOf("beliefs"), lenient: true } as const;
      assert.deepEqual(checkLog(records.slice(cut), options).findings, [], `from ${cut}`);
    }
  });
});
