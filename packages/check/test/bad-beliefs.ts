import { formatInstant } from "@harmovela/envelope";
import type { RuleId } from "../src/index.ts";
import type { BadLog } from "./bad-log.ts";
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
  say,
} from "./belief-log.ts";
import type { LogBuilder } from "./log-builder.ts";

const OPTIONS = { domain: "beliefs" } as const;
const SETTLED = { ...OPTIONS, settled: true } as const;

const A = { source: "agent:a", value: 1 };
const B = { source: "agent:b", value: 2 };

/** A log of the domain, and what is wrong with it. */
function bad(rule: RuleId, why: string, build: (log: LogBuilder) => number): BadLog {
  return { rule, why, options: OPTIONS, build };
}

/** The same in a log that should be at rest. */
function open(rule: RuleId, why: string, build: (log: LogBuilder) => number): BadLog {
  return { rule, why, options: SETTLED, build };
}

/** agent:a says 1 of `memory:f`, agent:b says 2. */
function disagree(log: LogBuilder): void {
  claim(log, "f", "agent:a", 1);
  claim(log, "f", "agent:b", 2);
}

/** A claim that holds for a second, and its end. */
function brief(log: LogBuilder, fields: Record<string, unknown> = {}) {
  const fact = claim(log, "f", "memory:main", 1, { stale_after: "PT1S", ...fields });
  return { fact, end: log.at + 1_000 };
}

const conflicts: BadLog[] = [
  bad("conflict-fields", "without a status", (log) => {
    disagree(log);
    conflict(log, "memory:f", [A, B], { belief_status: undefined });
    return log.last;
  }),
  ...(
    [
      ["a value that nobody claims", [{ ...A, value: 3 }, B]],
      ["a source that never spoke", [A, { source: "agent:c", value: 3 }]],
      ["a confidence that nobody stated", [{ ...A, confidence: 0.5 }, B]],
      ["a source twice", [A, A]],
    ] as const
  ).map(([why, claims]) =>
    bad("conflict-claims", why, (log) => {
      disagree(log);
      conflict(log, "memory:f", claims);
      return log.last;
    }),
  ),
  bad("conflict-claims", "the sources agree", (log) => {
    claim(log, "f", "agent:a", { x: 1, y: [2] });
    claim(log, "f", "agent:b", { y: [2], x: 1 });
    const value = { x: 1, y: [2] };
    conflict(log, "memory:f", [
      { source: "agent:a", value },
      { source: "agent:b", value },
    ]);
    return log.last;
  }),
  bad("conflict-claims", "the one is valid when the other is not any more", (log) => {
    const noon = formatInstant(log.at + 60_000);
    claim(log, "f", "agent:a", 1, { valid_until: noon });
    claim(log, "f", "agent:b", 2, { valid_from: noon });
    conflict(log, "memory:f", [A, B]);
    return log.last;
  }),
  bad("conflict-claims", "one of them was withdrawn", (log) => {
    disagree(log);
    retract(log, "f", "agent:b");
    conflict(log, "memory:f", [A, B]);
    return log.last;
  }),
  bad("conflict-claims", "of another tenant", (log) => {
    claim(log, "f", "agent:a", 1);
    log.tenant = "beta";
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [A, B]);
    return log.last;
  }),
  bad("conflict-twice", "with the claims in another order", (log) => {
    disagree(log);
    conflict(log, "memory:f", [A, B]);
    conflict(log, "memory:f", [B, A]);
    return log.last;
  }),
  bad("conflict-twice", "after a source has said the same again", (log) => {
    disagree(log);
    conflict(log, "memory:f", [A, B]);
    claim(log, "f", "agent:b", 2);
    conflict(log, "memory:f", [A, B]);
    return log.last;
  }),
  bad("conflict-resolved", "its claims still contradict each other", (log) => {
    disagree(log);
    resolve(log, conflict(log, "memory:f", [A, B]));
    return log.last;
  }),
  bad("conflict-resolved", "twice", (log) => {
    disagree(log);
    const detected = conflict(log, "memory:f", [A, B]);
    claim(log, "f", "agent:b", 1);
    resolve(log, detected);
    resolve(log, detected);
    return log.last;
  }),
  bad("conflict-resolved", "what was no conflict", (log) => {
    resolve(log, claim(log, "f", "agent:a", 1));
    return log.last;
  }),
  open("conflict-open", "two agents revise the same differently", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    conclude(log, "agent:a", [fact]);
    conclude(log, "agent:b", [fact], { payload: { previous: "x", corrected: "z" } });
    return log.last;
  }),
  open("conflict-open", "two sources disagree", (log) => {
    disagree(log);
    return log.last;
  }),
  open("conflict-open", "they disagree again after they had agreed", (log) => {
    disagree(log);
    conflict(log, "memory:f", [A, B]);
    claim(log, "f", "agent:b", 1);
    claim(log, "f", "agent:b", 2);
    return log.last;
  }),
  open("conflict-open", "the one that lasts longest is not the one that is contradicted", (log) => {
    const minute = { stale_after: "PT1M" };
    claim(log, "f", "agent:a", 1);
    claim(log, "f", "agent:b", 1, minute);
    claim(log, "f", "agent:c", 2, minute);
    return log.last;
  }),
];

const marks: BadLog[] = [
  bad("mark-fields", "status retracted", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    const drawn = conclude(log, "agent:a", [fact]);
    const gone = retract(log, "f", "memory:main");
    mark(log, gone, drawn.id, { belief_status: "retracted" });
    return log.last;
  }),
  bad("mark-fields", "it depends on nothing", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    const drawn = conclude(log, "agent:a", [fact]);
    const gone = retract(log, "f", "memory:main");
    mark(log, gone, drawn.id, { payload: { resource: drawn.id } });
    return log.last;
  }),
  bad("mark-cause", "because of a claim", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    const drawn = conclude(log, "agent:a", [fact]);
    mark(log, fact, drawn.id);
    return log.last;
  }),
  bad("mark-unreachable", "what rests on something else", (log) => {
    claim(log, "f", "memory:main", 1);
    const drawn = conclude(log, "agent:a", [claim(log, "g", "memory:main", 2)]);
    mark(log, retract(log, "f", "memory:main"), drawn.id);
    return log.last;
  }),
  bad("mark-unreachable", "what was retracted itself", (log) => {
    claim(log, "f", "memory:main", 1);
    mark(log, retract(log, "f", "memory:main"), "memory:f");
    return log.last;
  }),
  bad("mark-unreachable", "what rests on the fact as it was said anew", (log) => {
    claim(log, "f", "memory:main", 1);
    const gone = retract(log, "f", "memory:main");
    const drawn = conclude(log, "agent:a", [claim(log, "f", "memory:main", 2)]);
    mark(log, gone, drawn.id);
    return log.last;
  }),
  bad("mark-cause", "because of a retraction in another tenant", (log) => {
    claim(log, "f", "memory:main", 1);
    const gone = retract(log, "f", "memory:main");
    log.tenant = "beta";
    const drawn = conclude(log, "agent:a", [claim(log, "f", "memory:main", 1)]);
    mark(log, gone, drawn.id);
    return log.last;
  }),
  bad("mark-twice", "in a plan", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    const drawn = conclude(log, "agent:a", [fact]);
    const plan = beginRetract(log, "f", "memory:main");
    mark(log, plan, drawn.id);
    mark(log, plan, drawn.id);
    return log.last;
  }),
  bad("mark-twice", "of which a loss of evidence was told before", (log) => {
    const drawn = conclude(log, "agent:a", [claim(log, "f", "memory:main", 1)]);
    markLost(log, drawn);
    markLost(log, drawn);
    return log.last;
  }),
  bad("mark-cause", "because of a claim, where other logs are seen", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    markLost(log, conclude(log, "agent:a", [fact]), { causation_id: fact.id });
    return log.last;
  }),
  open("mark-open", "a diamond whose foot was forgotten", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    const left = conclude(log, "agent:a", [fact]);
    const right = conclude(log, "agent:b", [fact]);
    conclude(log, "agent:c", [left, right]);
    const foot = log.last;
    const plan = beginRetract(log, "f", "memory:main");
    mark(log, plan, left.id);
    mark(log, plan, right.id);
    log.finish(plan);
    return foot;
  }),
  open("mark-open", "what arrives after the retraction", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    retract(log, "f", "memory:main");
    claim(log, "g", "agent:a", 2, { evidence_chain: [{ source: "memory:main", id: fact.id }] });
    return log.last;
  }),
  open("mark-open", "what cites evidence that arrives late", (log) => {
    const fact = claim(log, "f", "memory:main", 1);
    claim(log, "g", "agent:a", 2, { evidence_chain: [{ source: "agent:b", id: "evt_late" }] });
    const first = log.last;
    retract(log, "f", "memory:main");
    const late = { id: "evt_late", evidence_chain: [{ source: "memory:main", id: fact.id }] };
    const between = claim(log, "h", "agent:b", 3, late);
    mark(log, { ...between, id: log.items[log.items.length - 2]?.envelope?.id ?? "" }, "memory:h");
    return first;
  }),
  open("mark-open", "what rests on a context that does not hold any more", (log) => {
    const context = { payload: { context_key: "tree", new_value: ["a"] } };
    const tree = say(log, "context.updated", "context:main", context);
    conclude(log, "agent:a", [tree]);
    const drawn = log.last;
    say(log, "context.invalidated", "context:main", { payload: { context_key: "tree" } });
    return drawn;
  }),
  bad("begun-form", "a claim begins a walk", (log) => {
    const fields = { payload: { fact_id: "f", value: 1 } };
    log.begin(log.draft("memory.fact.added", "agent:a", fields));
    return log.last;
  }),
  open("plan-open", "the retraction is never logged", (log) => {
    claim(log, "f", "memory:main", 1);
    beginRetract(log, "f", "memory:main");
    return log.last;
  }),
];

const freshness: BadLog[] = [
  bad("freshness-early", "a millisecond before", (log) => {
    const { fact, end } = brief(log);
    log.wait(999);
    expire(log, fact, "memory:f", end);
    return log.last;
  }),
  ...(
    [
      ["no end in the envelope", { valid_until: undefined }],
      ["no end in the payload", { payload: { valid_until: undefined } }],
      ["two ends", { valid_until: "2027-01-15T08:00:02Z" }],
      ["never detected", { payload: { detected_at: undefined } }],
      ["detected too early", { payload: { detected_at: "2027-01-15T08:00:00Z" } }],
      ["cached at no time", { payload: { cached_at: undefined } }],
    ] as const
  ).map(([why, fields]) =>
    bad("freshness-fields", why, (log) => {
      const { fact, end } = brief(log);
      log.wait(1_000);
      expire(log, fact, "memory:f", end, fields);
      return log.last;
    }),
  ),
  bad("freshness-window", "another end than was said", (log) => {
    const { fact, end } = brief(log, { valid_until: "2027-01-15T09:00:00Z" });
    log.wait(7_200_000);
    expire(log, fact, "memory:f", end + 1);
    return log.last;
  }),
  bad("freshness-window", "the later of two ends", (log) => {
    const { fact } = brief(log, { valid_until: "2027-01-15T09:00:00Z" });
    log.wait(7_200_000);
    expire(log, fact, "memory:f", Date.parse("2027-01-15T09:00:00Z"));
    return log.last;
  }),
  bad("freshness-window", "a claim that its source has replaced", (log) => {
    const { fact, end } = brief(log);
    claim(log, "f", "memory:main", 2);
    log.wait(1_000);
    expire(log, fact, "memory:f", end);
    return log.last;
  }),
  bad("freshness-window", "another resource", (log) => {
    const { fact, end } = brief(log);
    log.wait(1_000);
    expire(log, fact, "memory:g", end);
    return log.last;
  }),
  bad("freshness-window", "because of nothing", (log) => {
    const { fact, end } = brief(log);
    log.wait(1_000);
    expire(log, { ...fact, id: "evt_never" }, "memory:f", end);
    return log.last;
  }),
  bad("freshness-window", "the old end of a window that was extended", (log) => {
    const { fact, end } = brief(log, {
      stale_after: undefined,
      valid_until: "2027-01-15T08:00:01Z",
    });
    changeWindow(log, "memory:main", "memory:f", end + 60_000);
    log.wait(1_000);
    expire(log, fact, "memory:f", end);
    return log.last;
  }),
  bad("freshness-twice", "the same window", (log) => {
    const { fact, end } = brief(log);
    log.wait(1_000);
    expire(log, fact, "memory:f", end);
    expire(log, fact, "memory:f", end);
    return log.last;
  }),
  bad("freshness-twice", "for each of two sources that end together", (log) => {
    const { fact, end } = brief(log);
    const other = claim(log, "f", "agent:b", 1, { valid_until: formatInstant(end) });
    log.wait(1_000);
    expire(log, fact, "memory:f", end);
    expire(log, other, "memory:f", end);
    return log.last;
  }),
  open("freshness-open", "a window that was shortened once more to where it had ended", (log) => {
    const { fact, end } = brief(log, { stale_after: undefined, valid_until: undefined });
    const { last } = log;
    changeWindow(log, "memory:main", "memory:f", end);
    log.wait(1_000);
    expire(log, fact, "memory:f", end);
    changeWindow(log, "memory:main", "memory:f", end + 60_000);
    changeWindow(log, "memory:main", "memory:f", end);
    return last;
  }),
  open("freshness-open", "nobody says so", (log) => {
    brief(log);
    const { last } = log;
    log.wait(1_000);
    claim(log, "g", "memory:main", 2);
    return last;
  }),
  open("freshness-open", "a window that was shortened into the past", (log) => {
    brief(log, { stale_after: "P1D" });
    const { last } = log;
    log.wait(5_000);
    changeWindow(log, "memory:main", "memory:f", log.at - 1_000);
    return last;
  }),
  bad("window-party", "a stranger", (log) => {
    brief(log);
    changeWindow(log, "agent:a", "memory:f", log.at + 60_000);
    return log.last;
  }),
  bad("window-party", "the memory of a context", (log) => {
    const payload = { context_key: "tree", new_value: 1 };
    say(log, "context.updated", "context:main", { stale_after: "PT1S", payload });
    changeWindow(log, "memory:main", "context:tree", log.at + 60_000);
    return log.last;
  }),
  bad("owed-type", "the service claims something", (log) => {
    log.owe("nothing", "memory.fact.added", { payload: { fact_id: "f", value: 1 } });
    return log.last;
  }),
  bad("id-derived-form", "an expiry under an agent's id", (log) => {
    const { fact, end } = brief(log);
    log.wait(1_000);
    expire(log, fact, "memory:f", end, { id: "evt_expired" });
    return log.last;
  }),
  bad("owed-source", "an expiry that an agent owes", (log) => {
    const { fact, end } = brief(log);
    log.wait(1_000);
    expire(log, fact, "memory:f", end, { source: "agent:a" });
    return log.last;
  }),
  bad("profile-fields", "a revision without status, the profile is in force by default", (log) => {
    log.epoch({ defaultProfiles: ["harmovela.runtime-semantics.v1"] });
    say(log, "belief.revised", "agent:a", { payload: { previous: "x", corrected: "y" } });
    return log.last;
  }),
];

/** Every rule of the domain `beliefs`, broken. */
export const badBeliefs: BadLog[] = [...conflicts, ...marks, ...freshness];
