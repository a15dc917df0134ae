/** `scope: "tree"`: a subtree is stopped leaves first and goes on in the opposite order (issue "interruption manager"). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { describeState } from "../src/index.ts";
import {
  acknowledged,
  brief,
  type Fields,
  NOW,
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

/** `t` with the children a and b, a with the child c; all of them taken by agent:w. */
function family(): World {
  return world().tasks(
    ...started("t"),
    ...started("a", { parent_task_id: "t" }),
    ...started("b", { parent_task_id: "t" }),
    ...started("c", { parent_task_id: "a" }),
  );
}

const tree = (payload: JsonObject = {}, fields: Fields = {}) =>
  requested({ scope: "tree", ...payload }, { id: "i", ...fields });
const on = (id: string, fields: Fields = {}): Fields => ({ task_id: id, ...fields });

function save(scenario: World, ...ids: string[]): World {
  for (const id of ids) scenario.given(acknowledged(on(id)), saved(`ck_${id}`, on(id)));
  return scenario;
}

function stopped(scenario: World, id: string): unknown {
  return scenario.read("interruption", { task_id: id }).is_stopped;
}

function openOf(scenario: World, id: string): JsonObject | undefined {
  return scenario.read("interruption", { task_id: id }).open as JsonObject | undefined;
}

describe("a request for a subtree", () => {
  test("is begun, then everybody is asked, leaves first, the root's own event last", () => {
    const scenario = family();
    scenario
      .when(tree({ grace_period_ms: 100, reason: "maintenance" }))
      .begun("interruption.requested");
    const said = scenario.wait(7).said();
    assert.deepEqual(brief(said), ["requested c", "requested a", "requested b", "requested t"]);
    const [first, , , last] = said;
    assert.equal(last?.id, "i");
    assert.equal(last?.source, "agent:s");
    assert.deepEqual([first?.causation_id, first?.correlation_id], ["i", "i"]);
    assert.equal(first?.interruption_policy, "save_and_stop");
    assert.deepEqual(payloadOf(first), {
      task_id: "c",
      reason: "maintenance",
      root_task_id: "t",
      grace_period_ms: 100,
    });
    // The grace of each runs from its own entry.
    assert.deepEqual(scenario.said(NOW + 106), []);
    assert.equal(scenario.said(NOW + 107).length, 4);
  });

  test("without live descendants is a request as any other", () => {
    world()
      .tasks(...started())
      .when(tree())
      .accepted();
    const over = world().tasks(...started(), ...started("a", { parent_task_id: "t" }));
    over.tasks(task("completed", "a")).when(tree()).accepted();
  });

  test("concerns whom it finds when it begins: not who comes later, nor who has ended meanwhile", () => {
    const scenario = family().given(tree());
    scenario.tasks(...started("late", { parent_task_id: "a" }), task("completed", "b"));
    assert.deepEqual(brief(scenario.said()), ["requested c", "requested a", "requested t"]);
  });

  test("passes over who is interrupted already by a request that is not weaker", () => {
    const scenario = family().given(
      requested({}, on("a", { id: "own", interruption_policy: "force_stop" })),
    );
    scenario.given(tree(), requested({}, on("c", { id: "late" })));
    assert.deepEqual(brief(scenario.said()), ["requested b", "requested t"]);
    assert.deepEqual([openOf(scenario, "a")?.id, openOf(scenario, "c")?.id], ["own", "late"]);
  });

  test("takes the place of weaker ones below its root, and leaves who has stopped as he is", () => {
    const scenario = family().given(tree({}, { id: "weak" }));
    scenario.said();
    save(scenario, "b").given(acknowledged(on("a")));
    scenario.given(tree({}, { id: "strong", interruption_policy: "force_stop" }));
    assert.deepEqual(brief(scenario.said()), ["requested c", "requested a", "requested t"]);
    for (const id of ["t", "a", "b", "c"]) assert.equal(stopped(scenario, id), true);
    assert.deepEqual(scenario.said(NOW + 1e9), [], "no grace of a weaker one passes any more");
    save(scenario, "c", "a", "t").given(resumed("ck_t", { id: "r" }, { scope: "tree" }));
    assert.deepEqual(brief(scenario.said()), ["resumed b", "resumed a", "resumed c"]);
  });

  test("holds its root until its own event is logged", () => {
    const scenario = family().given(tree());
    const settling = { settling_by: "i", pending: true };
    scenario.when(requested()).rejected("task_error", settling);
    scenario.when(acknowledged()).rejected("task_error", settling);
    scenario.said();
    scenario.when(acknowledged()).accepted();
  });

  test("takes the place of a weaker one from its beginning on", () => {
    const scenario = family().given(
      requested({ grace_period_ms: 5 }, { id: "weak", interruption_policy: "drain_then_stop" }),
    );
    scenario.given(acknowledged({ id: "a" }), tree());
    assert.deepEqual(brief(scenario.said(NOW + 5)), [
      "requested c",
      "requested a",
      "requested b",
      "requested t",
    ]);
    scenario
      .when(saved("ck", { causation_id: "a" }))
      .rejected("task_error", { superseded_by: "i" });
    scenario.when(acknowledged()).accepted();
  });

  test("as strong as what is open is refused", () => {
    family().given(requested()).when(tree()).rejected("task_error", { policy: "save_and_stop" });
  });

  test("under a forced stop names no grace", () => {
    const scenario = family().given(tree({}, { interruption_policy: "force_stop" }));
    const said = scenario.said();
    for (const { payload } of said.slice(0, -1))
      assert.ok(!("grace_period_ms" in (payload as object)));
    for (const id of ["t", "a", "b", "c"]) assert.equal(stopped(scenario, id), true);
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });

  test("whose root ends meanwhile is logged all the same, and closed", () => {
    const scenario = family().given(tree());
    scenario.tasks(task("cancelled", "c"), task("cancelled", "a"), task("cancelled", "b"));
    scenario.tasks(task("cancelled", "t", { id: "end" }));
    const said = scenario.said();
    assert.deepEqual(brief(said), ["requested t", "cancelled t"]);
    assert.equal(said[1]?.causation_id, "end");
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });

  test("waits for one that is under way below it", () => {
    const scenario = family();
    scenario.given(tree({}, on("a", { id: "inner" })), tree({}, { id: "outer" }));
    const said = scenario.said();
    const place = (id: string): number => said.findIndex((sent) => sent.task_id === id);
    assert.deepEqual(brief(said).sort(), [
      "requested a",
      "requested b",
      "requested c",
      "requested t",
    ]);
    assert.ok(place("c") < place("a") && place("a") < place("t") && place("b") < place("t"));
    assert.equal(said[place("a")]?.id, "inner");
    assert.equal(said[place("t")]?.id, "outer");
  });

  test("is gone on with by whoever leads next, under the same ids", () => {
    const one = family().given(tree());
    one.step();
    one.step();
    const other = world();
    other.state = one.refold();
    const rest = one.said().map(({ id }) => id);
    assert.deepEqual(
      other.said().map(({ id }) => id),
      rest,
    );
    assert.equal(rest.length, 2);
    assert.deepEqual(describeState(other.state), describeState(one.state));
  });

  test("what cannot be written is passed over; a root that cannot be leaves all as it is", () => {
    const scenario = family().given(tree());
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    scenario.append({
      kind: "obligation_failed",
      id: owed.event.id,
      reason: "",
      cause: { owed: "i" },
      tenant: "acme",
    });
    assert.deepEqual(brief(scenario.said()), ["requested a", "requested b", "requested t"]);
    const root = family().given(tree());
    for (let step = 0; step < 3; step += 1) root.step();
    root.fail("i");
    assert.deepEqual(root.said(), []);
    root.when(requested()).accepted();
  });
});

describe("a subtree goes on", () => {
  const all = (): World => {
    const scenario = family().given(tree());
    scenario.said();
    return save(scenario, "c", "a", "b", "t");
  };
  const goOn = (fields: Fields = {}) => resumed("ck_t", { id: "r", ...fields }, { scope: "tree" });

  test("root first, parents before their children, each with its newest checkpoint", () => {
    const scenario = all().given(goOn());
    const said = scenario.said();
    assert.deepEqual(brief(said), ["resumed b", "resumed a", "resumed c"]);
    const [first] = said;
    assert.deepEqual(
      [first?.checkpoint_id, first?.causation_id, first?.correlation_id, first?.target],
      ["ck_b", "r", "r", "agent:w"],
    );
    for (const id of ["t", "a", "b", "c"]) assert.equal(stopped(scenario, id), false);
    assert.deepEqual(scenario.said(NOW + 1e9), []);
  });

  test("only who was stopped by this request and has saved", () => {
    const scenario = family().given(requested({}, on("b", { id: "own" })), tree({}, { id: "i" }));
    scenario.said();
    save(scenario, "b", "a", "t").given(goOn());
    assert.deepEqual(brief(scenario.said()), ["resumed a"]);
    assert.equal(stopped(scenario, "b"), true);
    assert.equal(openOf(scenario, "c")?.state, "requested");
  });

  test("not without being asked for", () => {
    const scenario = all().given(resumed("ck_t"));
    assert.deepEqual(scenario.said(), []);
    assert.equal(stopped(scenario, "a"), true);
    scenario.given(resumed("ck_a", on("a")));
    assert.deepEqual(scenario.said(), []);
  });

  test("passes over who went on, was cancelled, or ended meanwhile", () => {
    const scenario = all().given(goOn(), resumed("ck_b", on("b")));
    scenario.tasks(task("completed", "c"));
    assert.deepEqual(brief(scenario.said()), ["cancelled c", "resumed a"]);
  });

  test("also when the root was stopped by force in between", () => {
    const scenario = family().given(
      tree({ grace_period_ms: 50 }, { interruption_policy: "drain_then_stop" }),
    );
    scenario.said();
    save(scenario, "c", "a", "b");
    scenario.given(requested({}, { interruption_policy: "force_stop" }), saved("ck_t"), goOn());
    assert.deepEqual(brief(scenario.said()), ["resumed b", "resumed a", "resumed c"]);
  });

  test("also when a stronger tree request has replaced a weaker one", () => {
    const scenario = family().given(
      tree({}, { id: "weak", interruption_policy: "drain_then_stop" }),
    );
    scenario.said();
    save(scenario, "c", "b");
    scenario.given(tree({}, { id: "strong" }));
    assert.deepEqual(brief(scenario.said()), ["requested a", "requested t"]);
    save(scenario, "a", "t").given(goOn());
    assert.deepEqual(brief(scenario.said()), ["resumed b", "resumed a", "resumed c"]);
  });

  test("is gone on with by whoever leads next, under the same ids", () => {
    const one = all().given(goOn());
    one.step();
    const other = world();
    other.state = one.refold();
    const rest = one.said().map(({ id }) => id);
    assert.deepEqual(
      other.said().map(({ id }) => id),
      rest,
    );
    assert.equal(rest.length, 2);
  });

  test("what cannot be written is passed over", () => {
    const scenario = all().given(goOn());
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    scenario.append({
      kind: "obligation_failed",
      id: owed.event.id,
      reason: "",
      cause: { owed: "r" },
      tenant: "acme",
    });
    assert.deepEqual(brief(scenario.said()), ["resumed a", "resumed c"]);
  });
});

describe("large trees", () => {
  const shapes: [string, (index: number) => string][] = [
    ["ten thousand children", () => "t"],
    ["a chain of ten thousand", (index) => (index === 0 ? "t" : `n${index - 1}`)],
    [
      "ten thousand, ten below each",
      (index) => (index < 10 ? "t" : `n${Math.floor(index / 10) - 1}`),
    ],
  ];
  for (const [name, parentOf] of shapes) {
    test(name, () => {
      const count = 10_000;
      const scenario = world().tasks(submitted("t"));
      for (let index = 0; index < count; index += 1) {
        scenario.tasks(submitted(`n${index}`, { parent_task_id: parentOf(index) }));
      }
      scenario.given(tree({}, { interruption_policy: "force_stop" }));
      const place = new Map(scenario.said().map(({ task_id: id }, at) => [id, at]));
      assert.equal(place.size, count + 1);
      assert.equal(place.get("t"), count);
      for (let index = 0; index < count; index += 1) {
        assert.ok((place.get(`n${index}`) ?? 0) < (place.get(parentOf(index)) ?? 0));
      }
      const by: Fields = { source: "agent:s" };
      scenario.given(saved("ck", { ...by }));
      for (let index = 0; index < count; index += 2)
        scenario.given(saved("ck", on(`n${index}`, by)));
      scenario.given(resumed("ck", {}, { scope: "tree" }));
      const again = new Map(scenario.said().map(({ task_id: id }, at) => [id, at]));
      assert.equal(again.size, count / 2);
      for (const [id, at] of again) {
        const parent = parentOf(Number(id?.slice(1)));
        assert.ok((again.get(parent) ?? -1) < at);
      }
    });
  }
});
