/** What is judged before the tasks: sessions, rights, required fields, tasks of elsewhere (spec 1.4, 4.2, 5.1, 9.8; section 11, C40). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { settingsFrom } from "../src/environment.ts";
import { createManager } from "../src/index.ts";
import {
  acknowledged,
  brief,
  cancelled,
  closed,
  compensated,
  compensation,
  event,
  opened,
  requested,
  resumed,
  saved,
  started,
  task,
  type World,
  world,
} from "./support.ts";

const PROFILES = ["harmovela.core.v1", "harmovela.runtime-semantics.v1"];

/** A session that has negotiated runtime-semantics. */
function negotiated(): World {
  const scenario = world().tasks(opened("s1"), ...started());
  const capabilities = { protocol: "harmovela", transports: [], profiles: PROFILES };
  const ready = event("session.ready", { session_id: "s1", capabilities }, { session_id: "s1" });
  return scenario.ofTasks({ kind: "event", envelope: ready }, { owed: "x" });
}

function without(envelope: Envelope, ...fields: string[]): Envelope {
  const rest: Envelope = { ...envelope, session_id: "s1" };
  for (const field of fields) delete rest[field];
  return rest;
}

describe("fields that the profile requires", () => {
  const rows: [Envelope, string[]][] = [
    [requested(), ["interruption_policy"]],
    [saved(), ["checkpoint_id"]],
    [saved(), ["checkpoint_at"]],
    [resumed(), ["checkpoint_id"]],
    [compensation(), ["compensation_id"]],
    [compensated(), ["compensation_id"]],
    [acknowledged(), ["task_id"]],
    [cancelled(), ["task_id"]],
  ];
  for (const [envelope, fields] of rows) {
    test(`${envelope.type} needs ${fields}`, () => {
      const sent = without({ ...envelope, source: "agent:w" }, ...fields);
      negotiated().when(sent).rejected("invalid_envelope", { missing: fields });
    });
  }

  test("with all of them it is judged on", () => {
    const own = { source: "agent:w", session_id: "s1" };
    negotiated().when(requested({}, own)).accepted();
  });
});

test("an event of a session that has ended is refused", () => {
  const scenario = world().tasks(opened("s1"), ...started(), closed("s1"));
  scenario.when(requested({}, { source: "agent:w", session_id: "s1" })).rejected("session_closed");
});

test("in strict mode an event of a session that nobody opened is refused", () => {
  const scenario = world({ strictSessions: true }).tasks(...started());
  scenario.when(requested({}, { session_id: "none" })).rejected("session_error");
});

test("the governance decision holds here too", () => {
  const who = { actor_id: "a", requested_action: "task.manage", roles: ["viewer"] };
  const scenario = world().tasks(...started());
  scenario.when(requested({}, { ...who, tenant_id: "acme" })).rejected("unauthorized");
});

test("a second tenant's task of the same id is another one", () => {
  const scenario = world()
    .tasks(...started())
    .given(requested());
  const { decision } = scenario.judge(acknowledged(), "other");
  assert.ok("reject" in decision);
  scenario.when(acknowledged()).accepted();
});

describe("C40: tasks of elsewhere, where they are let in", () => {
  const open = (): World => world({ externalTasks: true });

  test("are interrupted and answered by anybody", () => {
    const scenario = open();
    scenario.given(requested({}, { source: "runtime:main", id: "i" }));
    scenario.given(acknowledged({ causation_id: "i", source: "agent:any" }), saved());
    scenario.when(resumed("ck", { source: "agent:x" })).accepted();
    scenario.given(requested(), acknowledged(), cancelled({ source: "agent:y" }));
    assert.deepEqual(scenario.requests(), [], "nobody can be asked to end them");
  });

  test("only a request makes them known", () => {
    for (const envelope of [acknowledged(), saved(), resumed(), cancelled()]) {
      open().when(envelope).rejected("task_error", { task_id: "t" });
    }
  });

  test("are stopped by force when nothing is saved, and nothing else follows", () => {
    const scenario = open().given(requested());
    assert.deepEqual(brief(scenario.said(scenario.now + 5_000)), ["requested t"]);
    assert.deepEqual(scenario.requests(), []);
    assert.deepEqual(scenario.said(scenario.now + 1e9), []);
  });

  test("are undone, unless they are interrupted and not stopped", () => {
    const scenario = open();
    scenario.given(compensation({}, { source: "orchestrator:main" }));
    assert.equal(scenario.request().type, "task.submitted");
    const other = { task_id: "v", compensation_id: "x" };
    scenario.given(requested({}, { task_id: "x" }));
    scenario.when(compensation({}, other)).rejected("task_error");
    scenario.given(acknowledged({ task_id: "x" }), saved("ck", { task_id: "x" }));
    scenario.when(compensation({}, other)).accepted();
  });

  test("belong here as soon as they are submitted", () => {
    const scenario = open()
      .given(requested())
      .tasks(...started());
    scenario.when(acknowledged({ source: "agent:x" })).rejected("unauthorized");
    scenario.given(acknowledged(), saved());
    scenario.tasks(task("completed", "t"));
    assert.deepEqual(brief(scenario.said()), ["cancelled t"]);
  });

  test("are not known without the setting", () => {
    world().when(requested()).rejected("task_error", { task_id: "t" });
  });
});

describe("the settings of a process", () => {
  test("come from its environment", () => {
    const problems: string[] = [];
    const env = { HARMOVELA_ORPHANED_TASKS: "interrupt", HARMOVELA_ON_GRACE_EXPIRED: "force_stop" };
    assert.deepEqual(settingsFrom(env, problems), {
      orphanedTasks: "interrupt",
      onGraceExpired: "force_stop",
    });
    assert.deepEqual(settingsFrom({ HARMOVELA_ORPHANED_TASKS: "" }, problems), {});
    assert.deepEqual(problems, []);
  });

  test("that are wrong are all named", () => {
    const problems: string[] = [];
    settingsFrom({ HARMOVELA_ORPHANED_TASKS: "x", HARMOVELA_ON_GRACE_EXPIRED: "y" }, problems);
    assert.equal(problems.length, 2);
  });

  test("are recorded with the leadership, with the domain and what it observes", () => {
    const definition = createManager({ onGraceExpired: "force_stop" });
    assert.equal(definition.settings.onGraceExpired, "force_stop");
    assert.equal(definition.service, "service:interruption-manager");
    assert.deepEqual([definition.domain, definition.observes], ["interruptions", ["tasks"]]);
  });
});
