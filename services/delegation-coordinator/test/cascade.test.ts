import assert from "node:assert/strict";
import { test } from "node:test";
import type { DomainEntry } from "@harmovela/envelope";
import { inter, see } from "./interruption-support.ts";
import {
  envelopesOf,
  ev,
  payloadOf,
  running,
  SERVICE,
  said,
  stateOf,
  type World,
  world,
} from "./support.ts";

/** p by agent:a, c by agent:b, g by agent:d, all running. */
function chain(): World {
  return world().given(
    ...running("p"),
    ev("submitted", "c", { by: "agent:a", target: "agent:b", parent: "p" }),
    ev("started", "c", { by: "agent:b" }),
    ev("submitted", "g", { by: "agent:b", target: "agent:d", parent: "c" }),
    ev("started", "g", { by: "agent:d" }),
  );
}

test("A1 a cascade ends every descendant, leaves first, the root last under the agent's id", () => {
  const scenario = chain();
  const cancel = ev("cancelled", "p", { id: "evt_cancel", payload: { reason: "user" } });
  scenario.when(cancel).begun("task.cancelled");
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancelled g", "cancelled c", "cancelled p"]);
  const [g, c, p] = envelopesOf(made);
  assert.equal(g?.causation_id, c?.id);
  assert.equal(c?.causation_id, "evt_cancel");
  assert.equal(p?.id, "evt_cancel");
  for (const derived of [g, c]) {
    assert.equal(derived?.source, SERVICE);
    assert.equal(derived?.correlation_id, "evt_cancel");
    assert.equal(derived?.session_id, "sess_1");
    assert.equal(derived?.tenant_id, undefined);
    assert.equal(derived?.created_at, "2026-11-30T00:00:00.000Z");
    assert.equal(payloadOf(derived).reason, "parent task cancelled");
    assert.equal(payloadOf(derived).root_task_id, "p");
    assert.equal(payloadOf(derived).forced, undefined);
  }
  assert.deepEqual([g?.target, c?.target], ["agent:d", "agent:b"]);
  assert.ok(made.every((entry) => "owed" in entry.cause && entry.cause.owed === "evt_cancel"));
});

test("9.9 derived events name the tenant when the event behind them does", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { more: { tenant_id: "acme" } })).begun("task.cancelled");
  for (const envelope of envelopesOf(scenario.settle())) assert.equal(envelope.tenant_id, "acme");
});

test("without live descendants the event itself is the entry", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "g", { by: "agent:d" })).accepted();
  assert.deepEqual(scenario.settle(), []);
});

for (const [name, outcome] of [
  ["failed", "failed"],
  ["timed_out", "timed_out"],
] as const) {
  test(`5.5 a parent's task.${name} cancels its descendants first`, () => {
    const scenario = chain();
    scenario.when(ev(name, "p")).begun(`task.${name}`);
    const made = scenario.settle();
    assert.deepEqual(said(made), ["cancelled g", "cancelled c", `${name} p`]);
    assert.equal(payloadOf(envelopesOf(made)[0]).root_outcome, outcome);
  });
}

test("A5 depth 8: nine events, deepest first, each once", () => {
  const scenario = world().given(...running("t0"));
  for (let i = 1; i <= 8; i++) scenario.given(...running(`t${i}`, { parent: `t${i - 1}` }));
  scenario.when(ev("cancelled", "t0")).begun("task.cancelled");
  const expected = [8, 7, 6, 5, 4, 3, 2, 1, 0].map((i) => `cancelled t${i}`);
  assert.deepEqual(said(scenario.settle()), expected);
});

test("A9 breadth 10, depth 4: 11,111 tasks end, parents after children", (t) => {
  const scenario = world().given(ev("submitted", "r"));
  let level = ["r"];
  for (let depth = 0; depth < 4; depth++) {
    level = level.flatMap((parent) => {
      const ids = Array.from({ length: 10 }, (_, i) => `${parent}${i}`);
      scenario.given(...ids.map((id) => ev("submitted", id, { parent })));
      return ids;
    });
  }
  scenario.when(ev("cancelled", "r", { id: "evt_cancel" })).begun("task.cancelled");
  const plan = scenario.state.tenants.get(scenario.tenant)?.plans.get("evt_cancel");
  const began = performance.now();
  const made: DomainEntry[] = [];
  for (let entry = scenario.step(); entry; entry = scenario.step()) {
    made.push(entry);
    // What a cascade remembers does not grow with its tree.
    assert.deepEqual([plan?.ready.size, plan?.waiters.size, plan?.dormant.size], [0, 0, 0]);
  }
  const ms = performance.now() - began;
  const rate = Math.round((made.length / ms) * 1_000);
  t.diagnostic(`${made.length} events in ${Math.round(ms)} ms, ${rate} a second`);
  const ended = said(made).map((line) => line.slice("cancelled ".length));
  assert.equal(ended.length, 11_111);
  assert.equal(new Set(ended).size, 11_111);
  const place = new Map(ended.map((id, index) => [id, index]));
  for (const id of ended) {
    if (id === "r") continue;
    assert.ok((place.get(id) ?? 0) < (place.get(id.slice(0, -1)) ?? 0), id);
  }
});

test("ended descendants are left alone", () => {
  const scenario = chain().given(ev("completed", "g", { by: "agent:d" }));
  scenario.when(ev("cancelled", "p")).begun("task.cancelled");
  assert.deepEqual(said(scenario.settle()), ["cancelled c", "cancelled p"]);
  assert.equal(stateOf(scenario, "g"), "completed");
});

test("while it is under way nothing is spawned and no work counts", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  const settling_by = "evt_cancel";
  for (const parent of ["p", "c", "g"]) {
    scenario.when(ev("submitted", "new", { parent })).rejected("task_error", { settling_by });
  }
  for (const name of ["progress", "output", "blocked"]) {
    scenario.when(ev(name, "g", { by: "agent:d" })).rejected("task_error", { settling_by });
    scenario.when(ev(name, "p")).rejected("task_error", { settling_by });
  }
});

test("while it is under way nothing else ends the root or a parent in it", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  const settling_by = "evt_cancel";
  for (const name of ["completed", "failed", "cancelled", "timed_out", "cancel.requested"]) {
    scenario.when(ev(name, "p")).rejected("task_error", { settling_by });
    scenario.when(ev(name, "c", { by: "agent:b" })).rejected("task_error", { settling_by });
  }
  scenario.settle();
  scenario.when(ev("completed", "p")).rejected("task_error", { state: "cancelled" });
});

test("when only the root is left its completion still comes too late", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  scenario.step();
  scenario.step();
  scenario.when(ev("completed", "p")).rejected("task_error", { settling_by: "evt_cancel" });
  assert.deepEqual(said(scenario.settle()), ["cancelled p"]);
});

test("a second cancel by another entitled party is told which one settles it", () => {
  const scenario = world().given(ev("submitted", "p", { by: "agent:boss" }), ev("started", "p"));
  scenario.given(...running("c", { parent: "p" }));
  scenario.when(ev("cancelled", "p", { id: "evt_first" })).begun("task.cancelled");
  scenario
    .when(ev("cancelled", "p", { by: "agent:boss" }))
    .rejected("task_error", { settling_by: "evt_first", pending: true });
});

test("a leaf may still end by itself, and is not cancelled then", () => {
  for (const name of ["completed", "failed", "cancelled", "timed_out"]) {
    const scenario = chain();
    scenario.when(ev("cancelled", "p")).begun("task.cancelled");
    scenario.when(ev(name, "g", { by: "agent:d" })).accepted();
    assert.deepEqual(said(scenario.settle()), ["cancelled c", "cancelled p"]);
    assert.equal(stateOf(scenario, "g"), name);
  }
});

test("a task whose planned end was named as a cause ends as planned", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  const [g] = envelopesOf([scenario.step()].flatMap((entry) => entry ?? []));
  scenario
    .when(ev("completed", "c", { by: "agent:b" }))
    .rejected("task_error", { settling_by: "evt_cancel" });
  const [c] = envelopesOf(scenario.settle());
  assert.equal(g?.causation_id, c?.id);
});

test("strangers are refused as such while it is under way", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p")).begun("task.cancelled");
  scenario.when(ev("completed", "g", { by: "agent:x" })).rejected("unauthorized");
});

test("plans take turns", () => {
  const scenario = world();
  for (const root of ["x", "y"]) {
    scenario.given(ev("submitted", root));
    for (const i of [1, 2, 3]) scenario.given(ev("submitted", `${root}${i}`, { parent: root }));
  }
  scenario.when(ev("cancelled", "x")).begun("task.cancelled");
  scenario.when(ev("cancelled", "y")).begun("task.cancelled");
  const roots = said(scenario.settle()).map((line) => line.charAt("cancelled ".length));
  assert.equal(roots.join(""), "xyxyxyxy");
});

test("a plan that cannot go on is given up, and its subtree opens again", () => {
  const scenario = chain();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  scenario.step();
  scenario.fail("evt_cancel");
  assert.equal(scenario.owed(), undefined);
  scenario.when(ev("progress", "c", { by: "agent:b" })).accepted();
  scenario.when(ev("cancelled", "p", { id: "evt_again" })).begun("task.cancelled");
  assert.deepEqual(said(scenario.settle()), ["cancelled c", "cancelled p"]);
});

test("two begun plans cannot share an event id", () => {
  const scenario = chain().given(...running("q"), ...running("d", { parent: "q" }));
  scenario.when(ev("cancelled", "p", { id: "evt_same" })).begun("task.cancelled");
  const input = { tenant: "acme", source: "agent:a", intake: 99 };
  const decision = scenario.decider.decide(
    scenario.state,
    { ...input, envelope: ev("cancelled", "q", { id: "evt_same" }) },
    { now: scenario.now, deriveId: (index) => index },
  );
  assert.ok("reject" in decision);
});

test("11 C9: with a parent that goes on a child is cancelled for no cause but its own", () => {
  const coordination = { defaultProfiles: ["harmovela.coordination.v1"] };
  const family = (settings = coordination) =>
    world(settings).given(...running("p"), ...running("c", { parent: "p" }));
  const ask = ev("cancel.requested", "c");
  const refused = { task_id: "c", parent_task_id: "p", causation_id: "evt_other" };
  const other = () => ev("cancelled", "c", { cause: "evt_other" });
  family().when(other()).rejected("task_error", refused).when(ev("cancelled", "c")).accepted();
  family()
    .given(ask)
    .when(ev("cancelled", "c", { cause: ask.id }))
    .accepted();
  family({ defaultProfiles: [] }).when(other()).accepted();
  // A root has no parent whose end could be meant.
  family()
    .given(ev("cancelled", "c"))
    .when(ev("cancelled", "p", { cause: "evt_other" }))
    .accepted();
  // Every event of its interruption may be why.
  const told = [
    inter("requested", "c", { by: "agent:a", policy: "drain_then_stop" }),
    inter("acknowledged", "c", { by: "agent:a" }),
    inter("saved", "c", { by: "agent:a", checkpoint: "k" }),
  ];
  for (const { id } of told) {
    see(family(), ...told)
      .when(ev("cancelled", "c", { cause: id }))
      .accepted();
  }
  see(family(), ...told)
    .when(other())
    .rejected("task_error", refused);
});
