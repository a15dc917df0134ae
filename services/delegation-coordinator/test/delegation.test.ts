import assert from "node:assert/strict";
import { test } from "node:test";
import { formatInstant } from "@harmovela/envelope";
import {
  accepted,
  claims,
  del,
  escalated,
  handedOff,
  parented,
  rejected,
  requested,
  signed,
  standing,
  tokenWorld,
} from "./delegation-support.ts";
import { envelopesOf, ev, payloadOf, running, said, stateOf, type World } from "./support.ts";

const STATES: Record<string, () => World> = {
  none: parented,
  requested,
  accepted,
  rejected,
  handed_off: handedOff,
  escalated,
};

/** By whom an event is in turn in each state; every other pair is refused. */
const TABLE: Record<string, Record<string, { by: string; next: string }[]>> = {
  requested: {
    none: [{ by: "agent:planner", next: "requested agent:planner" }],
    rejected: [{ by: "agent:planner", next: "requested agent:planner" }],
    handed_off: [{ by: "agent:worker", next: "requested agent:worker" }],
  },
  accepted: {
    requested: [{ by: "agent:worker", next: "accepted agent:planner" }],
    escalated: [{ by: "agent:boss", next: "accepted agent:planner" }],
  },
  rejected: {
    requested: [{ by: "agent:worker", next: "rejected agent:planner" }],
    accepted: [{ by: "agent:worker", next: "rejected agent:planner" }],
    escalated: [{ by: "agent:boss", next: "rejected agent:planner" }],
  },
  "handoff.completed": {
    accepted: [{ by: "agent:planner", next: "handed_off agent:worker" }],
  },
  escalated: {
    requested: [
      { by: "agent:planner", next: "escalated agent:planner" },
      { by: "agent:worker", next: "escalated agent:planner" },
    ],
    accepted: [
      { by: "agent:planner", next: "escalated agent:planner" },
      { by: "agent:worker", next: "escalated agent:planner" },
    ],
    handed_off: [
      { by: "agent:planner", next: "escalated agent:worker" },
      { by: "agent:worker", next: "escalated agent:worker" },
    ],
    escalated: [{ by: "agent:planner", next: "escalated agent:planner" }],
  },
};

const AGENTS = ["agent:planner", "agent:worker", "agent:boss", "agent:stranger"];

/** The event as its sender would say it in that state. */
function word(name: string, state: string, by: string) {
  if (name === "requested") {
    return del(name, { by, from: by, to: by === "agent:worker" ? "agent:other" : "agent:worker" });
  }
  if (name === "escalated") return del(name, { by, from: by, to: "agent:chief" });
  return del(name, { by, to: state === "escalated" ? "agent:boss" : "agent:worker" });
}

for (const [name, rows] of Object.entries(TABLE)) {
  for (const [state, create] of Object.entries(STATES)) {
    const inTurn = rows[state] ?? [];
    for (const by of AGENTS) {
      const row = inTurn.find((one) => one.by === by);
      // A new task may be offered by anybody, and a rejected offer has left none.
      const isNew = name === "requested" && (state === "none" || state === "rejected");
      if (isNew && row === undefined) continue;
      test(`delegation.${name} in ${state} by ${by}: ${row?.next ?? "refused"}`, () => {
        const scenario = create();
        const before = standing(scenario);
        const then = scenario.when(word(name, state, by));
        if (row) {
          then.accepted();
          assert.equal(standing(scenario), row.next);
          return;
        }
        const parties =
          state === "escalated"
            ? ["agent:planner", "agent:worker", "agent:boss"]
            : ["agent:planner", "agent:worker"];
        const isKnown = state === "none" || parties.includes(by);
        then.rejected(isKnown ? "protocol_error" : "unauthorized", { task_id: "c" });
        assert.equal(standing(scenario), before);
      });
    }
  }
}

test("B5 a delegated child is a live child of its parent, from its request on", () => {
  const scenario = requested();
  scenario.when(ev("completed", "p", { by: "agent:probe" })).rejected("task_error", {
    active_children: ["c"],
    active_count: 1,
  });
});

test("B5 a parent that has ended takes no delegation", () => {
  const scenario = parented().given(ev("completed", "p", { by: "agent:probe", id: "evt_end" }));
  scenario.when(del("requested")).rejected("task_error", { parent_task_id: "p" });
});

test("an unknown parent takes no delegation", () => {
  tokenWorld().when(del("requested")).rejected("task_error", { parent_task_id: "p" });
  tokenWorld()
    .when(del("requested", { parent: undefined }))
    .accepted();
});

test("the rejection of a task that was never submitted leaves nothing behind", () => {
  const scenario = rejected();
  assert.equal(stateOf(scenario, "c"), undefined);
  scenario.given(ev("completed", "p", { by: "agent:probe" }));
});

test("a task that has had children stays the delegator's when its delegate gives it back", () => {
  const scenario = accepted().given(
    ev("started", "c", { by: "agent:worker" }),
    ev("submitted", "g", { by: "agent:worker", parent: "c" }),
    ev("cancelled", "g", { by: "agent:worker" }),
    del("rejected"),
  );
  scenario.when(ev("completed", "p", { by: "agent:probe" })).rejected("task_error");
  scenario.when(ev("progress", "c", { by: "agent:worker" })).rejected("unauthorized");
  scenario.given(ev("cancelled", "c", { by: "agent:planner" }));
  scenario.given(ev("completed", "p", { by: "agent:probe" }));
});

test("the rejection of a submitted task leaves it with whose it was", () => {
  const scenario = parented().given(
    ...running("c", { by: "agent:planner", parent: "p" }),
    del("requested"),
    del("accepted"),
    del("rejected"),
  );
  assert.equal(stateOf(scenario, "c"), "started");
  scenario.given(ev("progress", "c", { by: "agent:planner" }));
  scenario.when(ev("progress", "c", { by: "agent:worker" })).rejected("unauthorized");
  scenario.when(ev("completed", "p", { by: "agent:probe" })).rejected("task_error");
});

test("a rejected task is offered again under its id, or under another one", () => {
  const scenario = rejected().given(del("requested", { to: "agent:other" }));
  assert.equal(standing(scenario), "requested agent:planner");
  rejected().given(del("requested", { task: "c2" }));
});

test("the same delegate is not asked again before retry_after", () => {
  const scenario = requested();
  const later = formatInstant(scenario.now + 1000);
  scenario.given(del("rejected", { payload: { retry_after: later } }));
  scenario.when(del("requested")).rejected("protocol_error", { retry_after_ms: 1000 });
  scenario.wait(1000).when(del("requested")).accepted();
});

test("the submission of a delegated task is accepted once, and only by who has a part in it", () => {
  const scenario = accepted();
  const submission = (by: string) => ev("submitted", "c", { by, parent: "p" });
  scenario.when(submission("agent:stranger")).rejected("unauthorized");
  scenario.when(ev("submitted", "c", { by: "agent:planner", parent: "q" })).rejected("task_error");
  scenario.given(submission("agent:planner"));
  assert.equal(stateOf(scenario, "c"), "accepted");
  scenario.when(submission("agent:planner")).rejected("task_error", { state: "accepted" });
  scenario.given(del("rejected"));
  assert.equal(stateOf(scenario, "c"), "accepted");
});

test("a delegate answers the offer, not the task; then it starts", () => {
  const scenario = requested();
  for (const name of ["accepted", "started"]) {
    scenario.when(ev(name, "c", { by: "agent:worker" })).rejected("protocol_error");
  }
  scenario.given(del("accepted"), ev("started", "c", { by: "agent:worker" }));
  scenario.when(ev("progress", "c", { by: "agent:planner" })).rejected("unauthorized");
});

test("I1 after a handoff the old owner is refused and told whose the task is", () => {
  const scenario = parented().given(
    ...running("c", { by: "agent:planner", parent: "p" }),
    del("requested"),
    del("accepted"),
    ev("progress", "c", { by: "agent:planner" }),
    del("handoff.completed"),
  );
  scenario
    .when(ev("progress", "c", { by: "agent:planner" }))
    .rejected("unauthorized", { owner: "agent:worker" });
  scenario.given(ev("progress", "c", { by: "agent:worker" }));
  assert.equal(standing(scenario), "handed_off agent:worker");
});

test("I3 a handoff is kept beside progress of the old owner, in both orders", () => {
  for (const isFirst of [true, false]) {
    const scenario = parented().given(
      ...running("c", { by: "agent:planner", parent: "p" }),
      del("requested"),
      del("accepted"),
    );
    const handoff = del("handoff.completed");
    const progress = ev("progress", "c", { by: "agent:planner" });
    if (isFirst) scenario.given(handoff).when(progress).rejected("unauthorized");
    else scenario.given(progress, handoff);
    assert.equal(standing(scenario), "handed_off agent:worker");
  }
});

test("of two handoffs the first wins and the second is told so", () => {
  const scenario = handedOff("evt_first");
  const winner = { event_id: "evt_first", type: "delegation.handoff.completed", seq: 6 };
  scenario.when(del("handoff.completed")).rejected("protocol_error", { winner });
});

test("I9 what nobody accepted in time is rejected, and a late word is refused", () => {
  const scenario = parented();
  const due = scenario.now + 500;
  scenario.given(del("requested", { id: "evt_r", payload: { deadline: formatInstant(due) } }));
  assert.deepEqual(scenario.settle(due - 1), []);
  const [expired] = envelopesOf(scenario.settle(due + 7));
  assert.equal(expired?.type, "delegation.rejected");
  assert.equal(expired?.causation_id, "evt_r");
  assert.equal(expired?.created_at, formatInstant(due));
  assert.equal(payloadOf(expired).reason, "deadline_expired");
  scenario.when(del("accepted")).rejected("protocol_error", { state: "rejected" });
  scenario.when(ev("completed", "c", { by: "agent:worker" })).rejected("task_error");
  const unnamed = del("accepted", { more: { task_id: undefined as never } });
  scenario.when(unnamed).rejected("invalid_envelope", { missing: ["task_id"] });
  scenario.given(ev("completed", "p", { by: "agent:probe" }));
});

test("I9 what was accepted and not done in time is timed out", () => {
  for (const isHandedOff of [false, true]) {
    const scenario = parented();
    const due = scenario.now + 500;
    const deadline = formatInstant(due);
    scenario.given(del("requested", { payload: { deadline } }), del("accepted"));
    if (isHandedOff) scenario.given(del("handoff.completed"));
    assert.deepEqual(said(scenario.settle(due)), ["timed_out c"]);
    scenario.when(ev("completed", "c", { by: "agent:worker" })).rejected("task_error");
    scenario.when(del("rejected")).rejected("task_error", { state: "timed_out" });
  }
});

test("a deadline of yesterday falls due at once and refuses nothing by itself", () => {
  const scenario = parented();
  scenario.given(del("requested", { payload: { deadline: "2026-11-29T23:59:00Z" } }));
  const [expired] = envelopesOf(scenario.settle());
  assert.equal(payloadOf(expired).reason, "deadline_expired");
});

test("a recording keeps the time that it gave", () => {
  const scenario = parented();
  const recorded = del("requested", {
    payload: { deadline: "2026-07-14T12:00:00Z" },
    more: { created_at: "2026-07-14T10:00:00Z" },
  });
  scenario.given(recorded);
  assert.deepEqual(scenario.settle(), []);
  scenario.given(del("accepted"), del("handoff.completed"));
  assert.deepEqual(said(scenario.settle(scenario.now + 7_199_999)), []);
  assert.deepEqual(said(scenario.settle(scenario.now + 1)), ["timed_out c"]);
});

test("an expired offer takes nothing from the owner of a running task", () => {
  const scenario = parented().given(...running("c", { by: "agent:planner", parent: "p" }));
  const deadline = formatInstant(scenario.now + 500);
  scenario.given(del("requested", { payload: { deadline } }));
  scenario.settle(scenario.now + 500);
  assert.equal(standing(scenario), "rejected agent:planner");
  scenario.given(ev("progress", "c", { by: "agent:planner" }));
});

test("a delegate that gives the task back takes its deadline along", () => {
  const scenario = parented().given(ev("submitted", "c", { by: "agent:planner", parent: "p" }));
  const deadline = formatInstant(scenario.now + 500);
  scenario.given(del("requested", { payload: { deadline } }), del("accepted"), del("rejected"));
  assert.deepEqual(scenario.settle(scenario.now + 10_000), []);
});

test("delegated children are part of a cascade, whatever became of their offers", () => {
  const scenario = parented().given(
    del("requested", { task: "c1", payload: { deadline: "2026-11-30T00:00:01Z" } }),
    del("requested", { task: "c2" }),
    del("accepted", { task: "c2" }),
    del("requested", { task: "c3" }),
    del("accepted", { task: "c3" }),
    del("handoff.completed", { task: "c3" }),
    ev("started", "c3", { by: "agent:worker" }),
    ev("submitted", "g", { by: "agent:worker", parent: "c3" }),
  );
  scenario
    .when(ev("cancelled", "p", { by: "agent:probe", id: "evt_stop" }))
    .begun("task.cancelled");
  const closed = { settling_by: "evt_stop" };
  scenario.when(del("accepted", { task: "c1" })).rejected("task_error", closed);
  scenario.when(del("requested", { task: "c4" })).rejected("task_error", closed);
  scenario
    .when(del("requested", { task: "c3", from: "agent:worker", to: "agent:other" }))
    .rejected("task_error", closed);
  assert.deepEqual(said(scenario.settle(scenario.now + 5_000)), [
    "cancelled c1",
    "cancelled c2",
    "cancelled g",
    "cancelled c3",
    "cancelled p",
  ]);
  scenario.when(del("accepted", { task: "c1" })).rejected("task_error", { state: "cancelled" });
});

test("whoever may cancel the parent may cancel the child", () => {
  const scenario = tokenWorld().given(
    ev("submitted", "p", { by: "agent:probe", target: "agent:lead" }),
    del("requested"),
  );
  scenario.when(ev("cancelled", "c", { by: "agent:stranger" })).rejected("unauthorized");
  scenario.when(ev("cancelled", "c", { by: "agent:lead" })).accepted();
});

test("a cycle is refused by naming it", () => {
  parented()
    .when(del("requested", { task: "p", parent: "p", from: "agent:probe" }))
    .rejected("task_error", { cycle: ["p", "p"] });
  tokenWorld()
    .when(del("requested", { task: "c", parent: "c" }))
    .rejected("task_error", { cycle: ["c", "c"] });
  const scenario = accepted().given(
    ev("started", "c", { by: "agent:worker" }),
    ev("submitted", "g", { by: "agent:worker", parent: "c" }),
  );
  scenario
    .when(del("requested", { task: "p", parent: "g", from: "agent:probe" }))
    .rejected("task_error", { cycle: ["p", "g", "c", "p"] });
});

test("depth is bounded", () => {
  const scenario = requested({ maxDepth: 1 });
  scenario
    .when(del("requested", { task: "g", parent: "c" }))
    .rejected("task_error", { depth_max: 1 });
});

test("the same key under the same parent never makes two tasks", () => {
  const keyed = (task: string, over = {}) =>
    del("requested", { task, payload: { key: "k" }, ...over });
  const scenario = parented().given(keyed("c"));
  const seq = scenario.log.length;
  scenario.when(keyed("c2")).duplicate(seq);
  scenario.when(keyed("c3", { to: "agent:other" })).duplicate(seq);
  assert.equal(stateOf(scenario, "c2"), undefined);
  scenario.when(keyed("c4", { from: "agent:other" })).accepted();
  scenario
    .when(del("requested", { payload: { key: "x".repeat(129) } }))
    .rejected("invalid_envelope");
});

test("what an event leaves out is read from its sender, its target and the state", () => {
  const bare = (name: string, by: string, target: string) =>
    del(name, {
      by,
      more: { delegated_by: undefined as never, delegated_to: undefined as never, target },
    });
  const scenario = parented();
  const { entry } = scenario.when(bare("requested", "agent:planner", "agent:worker")).outcome;
  assert.ok(entry?.kind === "event");
  assert.equal(entry.envelope.delegated_by, "agent:planner");
  assert.equal(entry.envelope.delegated_to, "agent:worker");
  scenario.given(bare("accepted", "agent:worker", "agent:planner"));
  scenario.given(bare("handoff.completed", "agent:planner", "agent:worker"));
  assert.equal(standing(scenario), "handed_off agent:worker");
});

test("an offer that names nobody is open to whoever accepts first", () => {
  const open = () =>
    parented().given(del("requested", { more: { delegated_to: undefined as never } }));
  open()
    .when(del("rejected", { by: "agent:other", to: "agent:other" }))
    .rejected("unauthorized");
  open()
    .when(del("accepted", { by: "agent:other", to: "agent:worker" }))
    .rejected("protocol_error");
  const scenario = open().given(del("accepted"));
  scenario
    .when(del("accepted", { by: "agent:other", to: "agent:other" }))
    .rejected("unauthorized", { delegated_to: "agent:worker" });
  const token = signed(claims(scenario.now, "jti_open"));
  scenario.given(del("handoff.completed", { token }));
  assert.equal(standing(scenario), "handed_off agent:worker");
});

test("nobody delegates in another's name, or to other parties than agreed", () => {
  parented()
    .when(del("requested", { by: "agent:mallory" }))
    .rejected("unauthorized");
  requested()
    .when(del("accepted", { from: "agent:mallory", by: "agent:worker" }))
    .rejected("protocol_error");
  requested()
    .when(del("accepted", { parent: "q" }))
    .rejected("task_error", { parent_task_id: "p" });
});

test("with proved senders only who has a part in the parent delegates under it", () => {
  const scenario = parented({ authenticated: true });
  scenario.when(del("requested")).rejected("unauthorized");
  scenario.when(del("requested", { from: "agent:probe" })).accepted();
});

test("an echo of the runtime is logged and changes nothing", () => {
  const scenario = requested().given(del("rejected", { by: "harness:main" }));
  assert.equal(standing(scenario), "requested agent:planner");
});

test("two agents handing the same task to different delegates: one wins, the other is told who", () => {
  for (let run = 0; run < 1000; run++) {
    const scenario = parented();
    const order = run % 2 === 0 ? ["a", "b"] : ["b", "a"];
    const offers = order.map((name) =>
      del("requested", { from: `agent:${name}`, to: `agent:w${name}`, id: `evt_${run}_${name}` }),
    );
    const [first, second] = offers;
    assert.ok(first && second);
    scenario.given(first);
    const { decision } = scenario.judge(second);
    assert.ok("reject" in decision);
    assert.deepEqual(decision.reject.details?.winner, {
      event_id: first.id,
      type: "delegation.requested",
      seq: 4,
    });
    const [accept, refused] = order.map((name) =>
      del("accepted", { from: `agent:${name}`, to: `agent:w${name}` }),
    );
    assert.ok(accept && refused);
    scenario.when(refused).rejected("unauthorized");
    scenario.given(accept);
    assert.equal(standing(scenario), `accepted agent:${order[0]}`);
  }
});

test("escalation puts others in the place of the parties and takes nobody's task away", () => {
  const scenario = handedOff().given(
    ev("started", "c", { by: "agent:worker" }),
    del("escalated", { by: "agent:worker", from: "agent:worker", to: "agent:boss" }),
    ev("progress", "c", { by: "agent:worker" }),
  );
  scenario.when(del("accepted", { by: "agent:worker" })).rejected("protocol_error");
  scenario.given(del("accepted", { from: "agent:worker", to: "agent:boss" }));
  const token = signed(claims(scenario.now, "jti_2", { iss: "agent:worker", sub: "agent:boss" }));
  scenario.given(del("handoff.completed", { from: "agent:worker", to: "agent:boss", token }));
  assert.equal(standing(scenario), "handed_off agent:boss");
  scenario.when(ev("progress", "c", { by: "agent:worker" })).rejected("unauthorized");
});

test("a supervisor that declines leaves the task where it is", () => {
  const scenario = handedOff().given(
    del("escalated", { by: "agent:worker", from: "agent:worker", to: "agent:boss" }),
    del("rejected", { from: "agent:worker", to: "agent:boss" }),
  );
  assert.equal(stateOf(scenario, "c"), "accepted");
  scenario.given(ev("started", "c", { by: "agent:worker" }));
  scenario.given(del("requested", { from: "agent:worker", to: "agent:other" }));
});
