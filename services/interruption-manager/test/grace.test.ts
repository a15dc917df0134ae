/** The grace period and what follows when nothing was saved in time (spec 5.7; section 11, C10). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  acknowledged,
  brief,
  cancelled,
  event,
  iso,
  NOW,
  payloadOf,
  requested,
  resumed,
  SERVICE,
  saved,
  started,
  task,
  type World,
  world,
} from "./support.ts";

const DAY = 86_400_000;

/** Nothing a millisecond before, exactly one entry at the time, none after. */
function expiresAt(scenario: World, due: number): Envelope {
  assert.equal(scenario.wakeAt(), due);
  assert.deepEqual(scenario.said(due - 1), []);
  const [expired, ...more] = scenario.said(due);
  assert.deepEqual(more, []);
  assert.ok(expired, "nothing was told");
  assert.deepEqual(scenario.said(due + 1e9), []);
  return expired;
}

describe("when it passes", () => {
  const graces: [string, JsonObject, number][] = [
    ["save_and_stop", {}, 5_000],
    ["save_and_stop", { grace_period_ms: 200 }, 200],
    ["save_and_stop", { grace_period_ms: 1 }, 1],
    ["drain_then_stop", {}, 60_000],
    ["drain_then_stop", { grace_period_ms: 90_000 }, 90_000],
    // H1: timers of the platform fire at once beyond 2^31 - 1 ms.
    ["save_and_stop", { grace_period_ms: 25 * DAY }, 25 * DAY],
  ];
  for (const [policy, payload, graceMs] of graces) {
    test(`${policy} ${JSON.stringify(payload)}: ${graceMs} ms after receipt, once`, () => {
      const scenario = world().tasks(...started("t", { tenant_id: "acme" }));
      const fields = { id: "i", interruption_policy: policy } as Partial<Envelope>;
      scenario.given(requested(payload, fields));
      const expired = expiresAt(scenario, NOW + graceMs);
      const { payload: said, delivery: _stamps, ...envelope } = expired;
      assert.deepEqual(envelope, {
        spec_version: "0.2",
        id: expired.id,
        type: "interruption.requested",
        source: SERVICE,
        target: "agent:w",
        created_at: iso(NOW + graceMs),
        task_id: "t",
        causation_id: "i",
        tenant_id: "acme",
        interruption_policy: "force_stop",
      });
      assert.deepEqual(said, {
        task_id: "t",
        reason: "no checkpoint within the grace period",
        grace_period_ms: 0,
        expired: true,
        on_grace_expired: "fail",
      });
      const asked = scenario.request();
      assert.equal(asked.type, "task.failed");
      assert.equal(asked.causation_id, expired.id);
      const { error } = payloadOf(asked);
      const { code, retryable, details } = error as JsonObject;
      assert.deepEqual([code, retryable], ["interruption_timeout", true]);
      assert.deepEqual(details, { task_id: "t", interruption: expired.id });
    });
  }

  test("H3: zero is at once", () => {
    const scenario = world().tasks(...started());
    scenario.given(requested({ grace_period_ms: 0 }));
    assert.deepEqual(brief(scenario.said()), ["requested t"]);
    assert.equal(scenario.request().type, "task.failed");
  });

  test("an acknowledgement does not stop the clock, and starts none", () => {
    const scenario = world().tasks(...started());
    scenario.given(requested()).wait(4_000).given(acknowledged());
    expiresAt(scenario, NOW + 5_000);
  });

  test("H5: what the agents' clocks say does not matter", () => {
    for (const created of [NOW - 600_000, NOW + 600_000]) {
      const scenario = world().tasks(...started());
      scenario.given(requested({}, { created_at: iso(created) }));
      expiresAt(scenario, NOW + 5_000);
    }
  });

  test("several due at once are told each, the earliest first", () => {
    const scenario = world().tasks(...started("t"), ...started("a"), ...started("b"));
    scenario.given(requested({ grace_period_ms: 30 }));
    scenario.given(requested({ grace_period_ms: 20 }, { task_id: "a" }));
    scenario.given(requested({ grace_period_ms: 20 }, { task_id: "b" }));
    assert.deepEqual(brief(scenario.said(NOW + 30)), ["requested a", "requested b", "requested t"]);
    assert.equal(scenario.requests().length, 3);
  });
});

describe("it never passes", () => {
  test("when a checkpoint is saved a millisecond before", () => {
    const scenario = world().tasks(...started());
    scenario.given(requested(), acknowledged()).wait(4_999).given(saved());
    assert.deepEqual(scenario.said(NOW + 1e9), []);
    assert.deepEqual(scenario.requests(), []);
    assert.equal(scenario.wakeAt(), undefined);
  });

  test("when the task is resumed, cancelled or over", () => {
    const ends: ((scenario: World) => unknown)[] = [
      (scenario) => scenario.given(acknowledged(), saved(), resumed()),
      (scenario) => scenario.given(acknowledged(), cancelled()),
      (scenario) => scenario.tasks(task("completed", "t")),
    ];
    for (const end of ends) {
      const scenario = world()
        .tasks(...started())
        .given(requested());
      end(scenario);
      const said = scenario.said(NOW + 1e9).filter(({ type }) => type !== "interruption.cancelled");
      assert.deepEqual(said, []);
    }
  });

  test("under a forced stop, whatever grace it names", () => {
    const scenario = world().tasks(...started());
    const forced = { interruption_policy: "force_stop" } as const;
    scenario.given(requested({ grace_period_ms: 10 }, forced));
    assert.deepEqual(scenario.said(NOW + 1e9), []);
    assert.equal(scenario.wakeAt(), undefined);
  });

  test("for what a stronger request has replaced", () => {
    const scenario = world().tasks(...started());
    scenario.given(requested(), requested({}, { interruption_policy: "force_stop" }));
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });
});

describe("what follows", () => {
  test("the end is settled: nothing is saved, resumed or asked for any more", () => {
    const scenario = world()
      .tasks(...started())
      .given(requested(), acknowledged());
    const [expired] = scenario.said(NOW + 5_000);
    assert.ok(expired, "nothing was told");
    const details = { settling_by: expired.id, pending: true, policy: "force_stop" };
    scenario.when(saved()).rejected("task_error", details);
    scenario.when(resumed()).rejected("task_error", details);
    scenario.when(requested()).rejected("task_error", details);
    assert.equal(scenario.requests().length, 1);
  });

  test("the failure ends it, with one closing entry", () => {
    const scenario = world()
      .tasks(...started())
      .given(requested());
    const [expired] = scenario.said(NOW + 5_000);
    const asked = scenario.request();
    scenario.grant(asked);
    assert.deepEqual(scenario.requests(), []);
    const [closing, ...more] = scenario.said();
    assert.deepEqual(more, []);
    assert.deepEqual([closing?.correlation_id, closing?.causation_id], [expired?.id, asked.id]);
    const { past } = scenario.read("interruption", { task_id: "t" });
    assert.equal((past as unknown[]).length, 2);
  });

  test("set to force_stop it stays stopped, and what is saved late counts", () => {
    const scenario = world({ onGraceExpired: "force_stop" }).tasks(...started());
    scenario.given(requested({}, { id: "i" }), acknowledged({ id: "a" }));
    const [expired] = scenario.said(NOW + 5_000);
    assert.equal(payloadOf(expired).on_grace_expired, "force_stop");
    assert.deepEqual(scenario.requests(), []);
    scenario.when(saved("ck", { causation_id: "a" })).rejected("task_error");
    scenario.given(saved(), resumed());
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });

  test("what an expiry said once holds under another setting", () => {
    const scenario = world({ onGraceExpired: "force_stop" }).tasks(...started());
    scenario.given(requested());
    scenario.said(NOW + 5_000);
    const next = world({ onGraceExpired: "fail" });
    next.state = next.refold(scenario.journal);
    next.at(scenario.now);
    assert.deepEqual(next.requests(), []);
  });

  test("an end that is asked for already is not asked for twice", () => {
    const scenario = world().tasks(...started());
    scenario.tasks(task("completed", "t")).given();
    const undo = { source: "agent:s", task_id: "u", compensation_id: "t" };
    const said = { reason: "r", description: "d" };
    scenario.given(event("compensation.requested", said, undo));
    scenario.grant(scenario.request()).tasks(task("started", "u"));
    scenario.given(requested({}, { task_id: "u" }));
    scenario.given(event("compensation.completed", {}, { ...undo, source: "agent:w" }));
    assert.deepEqual(brief(scenario.said(NOW + 5_000)), ["requested u"], "the due time is told");
    assert.equal(scenario.request().type, "task.completed");
  });

  test("what cannot be written is given up, and nothing else with it", () => {
    const scenario = world().tasks(...started(), ...started("o"));
    scenario.given(requested(), requested({}, { task_id: "o" })).wait(5_000);
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    scenario.fail(owed.event.id);
    assert.deepEqual(brief(scenario.said()), ["requested o"]);
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });
});
