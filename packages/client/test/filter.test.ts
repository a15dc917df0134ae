/** Filter matching (spec 5.3). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entryFilter } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { type Filter, Matcher } from "../src/filter.ts";

const address = (type: string, source = "agent:a", target?: string) => ({
  tenant: "t",
  domain: "tasks" as const,
  source,
  target,
  type,
});
const event = (more: Partial<Envelope>): Envelope => ({
  spec_version: "0.2",
  id: "evt_1",
  type: "task.progress",
  source: "agent:a",
  created_at: "2026-11-30T10:00:00Z",
  payload: {},
  ...more,
});

describe("filter", () => {
  for (const [pattern, matching, other] of [
    ["*", ["task.progress", "memory.fact.added"], []],
    ["task.*", ["task.progress", "task.cancel.requested"], ["task", "tasks.progress"]],
    ["memory.*", ["memory.fact.added"], ["memory", "state.delta.applied"]],
    ["*.fact.*", ["memory.fact.added"], ["memory.facts.added", "memory.fact", "fact.added"]],
    ["tool.*.progress", ["tool.call.progress"], ["tool.progress", "tool.call.sub.progress"]],
    ["*.progress", ["task.progress"], ["tool.call.progress"]],
    ["task.progress", ["task.progress"], ["task.progress.more", "task.Progress", "taskXprogress"]],
    ["*.*", ["task.progress", "tool.call.progress"], ["task"]],
    ["task.+", [], ["task.progress", "task.kk"]],
  ] as const) {
    it(`pattern ${pattern}`, () => {
      const matcher = new Matcher({ types: pattern });
      for (const type of matching) assert.equal(matcher.matchesAddress(address(type)), true, type);
      for (const type of other) assert.equal(matcher.matchesAddress(address(type)), false, type);
    });
  }

  it("all fields must match, within one field any value", () => {
    const matcher = new Matcher({ types: ["task.*", "tool.*"], source: ["agent:a", "agent:b"] });
    assert.equal(matcher.matchesAddress(address("task.progress", "agent:b")), true);
    assert.equal(matcher.matchesAddress(address("task.progress", "agent:c")), false);
    assert.equal(matcher.matchesAddress(address("agent.message.sent", "agent:a")), false);
    const aimed = new Matcher({ target: "agent:w" });
    assert.equal(aimed.matchesAddress(address("task.progress", "agent:a", "agent:w")), true);
    assert.equal(aimed.matchesAddress(address("task.progress", "agent:a")), false);
  });

  it("the body's fields; a task may be named in the payload alone", () => {
    const matcher = new Matcher({ task_id: ["t1", "__proto__"], session_id: "s" });
    assert.equal(matcher.matchesBody(event({ task_id: "t1", session_id: "s" })), true);
    assert.equal(matcher.matchesBody(event({ payload: { task_id: "t1" }, session_id: "s" })), true);
    assert.equal(matcher.matchesBody(event({ task_id: "__proto__", session_id: "s" })), true);
    assert.equal(matcher.matchesBody(event({ task_id: "t1" })), false);
    assert.equal(matcher.matchesBody(event({ session_id: "s" })), false);
    assert.equal(matcher.matchesBody(event({ task_id: "t2", session_id: "s" })), false);
    assert.equal(new Matcher({ topic: "a" }).matchesBody(event({ topic: "a" })), true);
    assert.equal(new Matcher({ conversation_id: "a" }).matchesBody(event({})), false);
  });

  it("an empty list counts as absent", () => {
    const matcher = new Matcher({ types: [], source: [], task_id: [] });
    assert.equal(matcher.matchesAddress(address("x.y")), true);
    assert.equal(matcher.matchesBody(event({})), true);
    assert.deepEqual(matcher.domains, ["tasks", "beliefs", "interruptions", "provenance"]);
  });

  it("the domains follow from the types", () => {
    const domainsOf = (filter: Filter) => new Matcher(filter).domains;
    assert.deepEqual(domainsOf({ types: "task.*" }), ["tasks"]);
    assert.deepEqual(domainsOf({ types: ["memory.fact.added", "tool.*"] }), ["tasks", "beliefs"]);
    assert.deepEqual(domainsOf({ types: "interruption.*" }), ["interruptions"]);
    assert.equal(domainsOf({ types: "*.rejected" }).length, 4);
    assert.equal(domainsOf({ types: "event.rejected" }).length, 4);
    assert.deepEqual(domainsOf({ types: "task.*", domains: ["beliefs"] }), ["beliefs"]);
  });

  for (const filter of [
    { types: "" },
    { types: 1 },
    { source: [1] },
    { task_id: null },
    { domains: [] },
    { domains: ["nothing"] },
  ]) {
    it(`refuses ${JSON.stringify(filter)}`, () => {
      assert.throws(
        () => new Matcher(filter as unknown as Filter),
        (error) => error instanceof HarmovelaError && error.code === "invalid_argument",
      );
    });
  }

  it("lets the broker select what one subject can say", () => {
    const subject = (filter: Filter, tenant = "t") =>
      entryFilter("log", { tenant, domain: "tasks" }, new Matcher(filter).selection);
    assert.equal(subject({}), "hv.t.log.tasks.*.*.>");
    assert.equal(subject({ types: "*" }), "hv.t.log.tasks.*.*.>");
    assert.equal(subject({ types: "task.*" }), "hv.t.log.tasks.*.*.task.>");
    assert.equal(subject({ types: "*.cancel.*" }), "hv.t.log.tasks.*.*.*.cancel.>");
    assert.equal(subject({ types: ["task.*", "tool.*"] }), "hv.t.log.tasks.*.*.>");
    assert.equal(subject({ types: "task. >" }), "hv.t.log.tasks.*.*.>");
    assert.equal(
      subject({ types: "task.submitted", source: "a b", target: "*" }, "x.y"),
      "hv.x%2Ey.log.tasks.a%20b.%2A.task.submitted",
    );
    assert.equal(subject({ source: ["a", "b"] }), "hv.t.log.tasks.*.*.>");
  });
});
