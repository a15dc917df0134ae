/** Sessions: whose answers count, and what the end of one interrupts (spec 5.1, 5.7). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ManagerSettings } from "../src/index.ts";
import {
  acknowledged,
  brief,
  cancelled,
  closed,
  event,
  type Fields,
  iso,
  NOW,
  opened,
  payloadOf,
  requested,
  resumed,
  saved,
  started,
  submitted,
  task,
  type World,
  world,
} from "./support.ts";

const IN: Fields = { session_id: "s1" };

/** agent:w has taken `t` in its session s1. */
function taken(settings: Partial<ManagerSettings> = {}, ...others: string[]): World {
  const scenario = world(settings).tasks(opened("s1"));
  for (const id of ["t", ...others]) scenario.tasks(...started(id, {}, IN));
  return scenario;
}

function lost(code = "session_timeout"): ReturnType<typeof event> {
  const error = { code, message: "", retryable: true };
  const more = { source: "service:delegation-coordinator", session_id: "s1", id: "lost" };
  return event("session.error", { session_id: "s1", error }, more);
}

describe("of several processes of one name the one that has the task answers", () => {
  const elsewhere: Fields[] = [{}, { session_id: "s2" }];
  for (const fields of elsewhere) {
    test(`not the one in ${fields.session_id ?? "no session"}`, () => {
      const scenario = taken().tasks(opened("s2")).given(requested());
      const details = { owner: "agent:w", session_id: "s1" };
      scenario.when(acknowledged(fields)).rejected("unauthorized", details);
      scenario.given(acknowledged(IN));
      scenario.when(saved("ck", fields)).rejected("unauthorized", details);
      scenario.when(saved("ck", IN)).accepted();
    });

    test(`which goes on with it as it likes from ${fields.session_id ?? "no session"}`, () => {
      const scenario = taken().tasks(opened("s2"));
      scenario.given(requested({}, { source: "agent:w", ...fields }), acknowledged(IN));
      scenario.given(saved("ck", IN), resumed("ck", { source: "agent:w", ...fields }));
      // From now on whoever resumed it has it.
      scenario.given(requested());
      const answer = acknowledged(fields);
      scenario.when(answer).accepted();
      if (fields.session_id === undefined) return;
      scenario.when(saved("ck2", IN)).rejected("unauthorized", { session_id: "s2" });
    });
  }

  test("resumed by somebody else it is any process's of its owner", () => {
    const scenario = taken().tasks(opened("s2"));
    scenario.given(requested(), acknowledged(IN), saved("ck", IN), resumed());
    scenario.given(requested(), acknowledged({ session_id: "s2" }));
  });

  test("and from its first work on it is that process's", () => {
    const scenario = taken().tasks(opened("s2"));
    scenario.given(requested(), acknowledged(IN), saved("ck", IN), resumed());
    scenario.tasks(task("progress", "t", { session_id: "s2" }));
    scenario.given(requested());
    scenario.when(acknowledged(IN)).rejected("unauthorized", { session_id: "s2" });
    scenario.when(acknowledged({ session_id: "s2" })).accepted();
  });

  test("any of them when the session that had it is over", () => {
    const scenario = taken().given(requested());
    scenario.tasks(closed("s1"));
    scenario.when(acknowledged()).accepted();
  });

  test("a session of somebody else's, or that nobody opened, makes no instance", () => {
    for (const session of ["nobody's", "theirs"]) {
      const scenario = world().tasks(opened("theirs", "agent:x"));
      scenario.tasks(...started("t", {}, { session_id: session }));
      scenario.given(requested(), acknowledged());
    }
  });
});

describe("a session that closes", () => {
  test("interrupts what it had, one by one", () => {
    const scenario = taken({}, "a", "b")
      .wait(10)
      .tasks(closed("s1", { id: "bye" }));
    const said = scenario.said();
    assert.deepEqual(brief(said).sort(), ["requested a", "requested b", "requested t"]);
    for (const envelope of said) {
      assert.equal(envelope.interruption_policy, "save_and_stop");
      assert.equal(envelope.causation_id, "bye");
      assert.equal(envelope.created_at, iso(NOW + 10));
      assert.deepEqual(payloadOf(envelope), {
        task_id: envelope.task_id,
        reason: "the session that had the task has ended",
        grace_period_ms: 5_000,
        ended_session_id: "s1",
      });
    }
    assert.deepEqual(scenario.said(), []);
    const expired = scenario.said(NOW + 5_010);
    assert.equal(expired.length, 3);
    assert.equal(scenario.requests().length, 3);
  });

  test("leaves alone what ended, is interrupted, or is other processes'", () => {
    const scenario = taken({}, "done", "held", "stopped", "cancelled", "resumed");
    scenario.tasks(
      opened("s2"),
      ...started("theirs", {}, { session_id: "s2" }),
      ...started("free"),
    );
    const of = (id: string): Fields => ({ task_id: id, ...IN });
    scenario.tasks(task("completed", "done"));
    scenario.given(requested({ grace_period_ms: 1e9 }, of("held")));
    scenario.given(requested({}, of("stopped")), acknowledged(of("stopped")));
    scenario.given(saved("ck", of("stopped")));
    scenario.given(requested({}, of("cancelled")), acknowledged(of("cancelled")));
    scenario.given(cancelled(of("cancelled")));
    scenario.given(requested({}, of("resumed")), acknowledged(of("resumed")));
    scenario.given(saved("ck", of("resumed")));
    scenario.given(resumed("ck", { ...of("resumed"), source: "agent:w" }));
    scenario.tasks(closed("s1"));
    assert.deepEqual(brief(scenario.said()).sort(), ["requested resumed", "requested t"]);
  });

  test("passes over what is interrupted between its end and the step", () => {
    const scenario = taken({}, "a").tasks(closed("s1"));
    scenario.given(requested({}, { id: "own" }));
    assert.deepEqual(brief(scenario.said()), ["requested a"]);
    assert.equal(scenario.read("interruption", { task_id: "t" }).is_stopped, false);
  });

  test("what was handed to another process meanwhile is that one's", () => {
    const scenario = world().tasks(opened("s1"), opened("s2", "agent:v"));
    scenario.tasks(...started("t", {}, IN));
    const offer = {
      source: "agent:w",
      task_id: "t",
      delegated_by: "agent:w",
      delegated_to: "agent:v",
    };
    scenario.tasks(event("delegation.requested", {}, offer));
    const theirs = { ...offer, source: "agent:v", session_id: "s2" };
    scenario.tasks(event("delegation.accepted", {}, theirs));
    scenario.tasks(event("delegation.handoff.completed", {}, offer));
    scenario.tasks(closed("s1"));
    assert.deepEqual(scenario.said(), []);
    scenario.tasks(closed("s2", { source: "agent:v" }));
    assert.deepEqual(brief(scenario.said()), ["requested t"]);
  });

  test("what is handed to a process that has gone is interrupted at once", () => {
    const scenario = world().tasks(opened("s1"), opened("s2", "agent:v"));
    scenario.tasks(...started("t", {}, IN));
    const offer = {
      source: "agent:w",
      task_id: "t",
      delegated_by: "agent:w",
      delegated_to: "agent:v",
    };
    scenario.tasks(event("delegation.requested", {}, offer));
    scenario.tasks(
      event("delegation.accepted", {}, { ...offer, source: "agent:v", session_id: "s2" }),
    );
    scenario.tasks(closed("s2", { source: "agent:v" }));
    assert.deepEqual(scenario.said(), []);
    scenario.tasks(event("delegation.handoff.completed", {}, offer));
    assert.deepEqual(brief(scenario.said()), ["requested t"]);
  });

  test("costs the same whatever it had; its steps come in turn with those of others", () => {
    const scenario = world().tasks(opened("s1"));
    const count = 2_000;
    for (let index = 0; index < count; index += 1) scenario.tasks(...started(`t${index}`, {}, IN));
    scenario.tasks(closed("s1"));
    assert.equal(scenario.state.graces.size, 0, "nothing at its end");
    const first = scenario.owed();
    assert.ok(first && "urgency" in first);
    assert.equal(first.urgency, "step");
    assert.equal(scenario.said().length, count);
  });

  test("the grace counts from that end, also under the time of an older entry", () => {
    const scenario = taken().given(requested({}, { task_id: "t" }), acknowledged(IN));
    scenario.given(saved("ck", IN), resumed("ck", { source: "agent:w", ...IN }));
    scenario.at(NOW + 60_000).tasks(closed("s1"));
    // A host that has written nothing since writes it under the time of its last entry.
    scenario.at(NOW).step();
    scenario.at(NOW + 60_000);
    assert.equal(scenario.wakeAt(), NOW + 60_000 + scenario.settings.saveGraceMs);
  });

  test("what cannot be written of one task is given up, the others follow", () => {
    const scenario = taken({}, "a").tasks(closed("s1"));
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    scenario.fail(owed.event.id);
    assert.deepEqual(brief(scenario.said()), ["requested t"]);
  });
});

describe("a session that is lost", () => {
  for (const orphanedTasks of ["fail", "keep"] as const) {
    test(`set to ${orphanedTasks}: nothing, it is left to the coordinator`, () => {
      const scenario = taken({ orphanedTasks }).tasks(lost());
      assert.deepEqual(scenario.said(NOW + 1e9), []);
    });
  }

  for (const code of ["session_timeout", "internal_error"]) {
    test(`set to interrupt: as one that closes (${code})`, () => {
      const scenario = taken({ orphanedTasks: "interrupt" }).tasks(lost(code));
      const [said, ...more] = scenario.said();
      assert.deepEqual(more, []);
      assert.deepEqual([said?.task_id, said?.causation_id], ["t", "lost"]);
    });
  }

  test("interrupts under the settings of whoever leads then", () => {
    const before = taken({ orphanedTasks: "keep" }).tasks(lost());
    assert.deepEqual(before.said(), []);
    const next = world({ orphanedTasks: "interrupt" });
    next.state = next.refold(before.journal);
    assert.deepEqual(brief(next.said()), ["requested t"]);
  });

  test("a task that nobody had in a session of its own is not interrupted", () => {
    const scenario = world({ orphanedTasks: "interrupt" }).tasks(opened("s1"), submitted("t", IN));
    scenario.tasks(task("started", "t"), lost());
    assert.deepEqual(scenario.said(), []);
  });
});
