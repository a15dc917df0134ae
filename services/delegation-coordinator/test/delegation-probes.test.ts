/** The delegation probes line by line: what each line is answered with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { claims, del, signed, standing, tokenWorld } from "./delegation-support.ts";
import { answers, opened } from "./family-support.ts";
import { ev, type World } from "./support.ts";

const SESSION = "sess_probe";
const PROFILES = [
  "harmovela.core.v1",
  "harmovela.runtime-semantics.v1",
  "harmovela.security.v1",
  "harmovela.coordination.v1",
];

const start = (): Envelope[] => [
  opened(SESSION, { profiles: PROFILES }, { source: "agent:probe" }),
  ...["submitted", "accepted", "started"].map((name) =>
    ev(name, "p", { by: "agent:probe", more: { session_id: SESSION } }),
  ),
];
const STARTED = ["accept", "> session.ready", "accept", "accept", "accept"];
const OFFERED = [...STARTED, "accept", "accept"];

const line = (name: string, fields = {}) => del(name, { session: SESSION, ...fields });
const handoff = (scenario: World, jti: string, over = {}, fields = {}) =>
  line("handoff.completed", { token: signed(claims(scenario.now, jti, over)), ...fields });

/** As in a deployment with proved senders (all four profiles), and without (no security, no coordination). */
for (const authenticated of [false, true]) {
  const create = () => tokenWorld({ authenticated });
  const offered = () => [...start(), line("requested", PLANNER), line("accepted", PLANNER)];
  // With proved senders only who has a part in the parent delegates under it.
  const by = authenticated ? "agent:probe" : "agent:planner";
  const PLANNER = { from: by };
  const own = { iss: by };

  test(`d01 accepted without request (authenticated: ${authenticated})`, () => {
    const lines = [...start(), line("accepted", PLANNER)];
    assert.deepEqual(answers(create(), lines), [...STARTED, "event.rejected protocol_error"]);
  });

  test(`d03 handoff without token (authenticated: ${authenticated})`, () => {
    const lines = [...offered(), line("handoff.completed", PLANNER)];
    assert.deepEqual(answers(create(), lines), [...OFFERED, "event.rejected invalid_envelope"]);
  });

  test(`d05 token of another issuer (authenticated: ${authenticated})`, () => {
    const scenario = create();
    const lines = [...offered(), handoff(scenario, "d05", { iss: "agent:mallory" }, PLANNER)];
    assert.deepEqual(answers(scenario, lines), [...OFFERED, "event.rejected unauthorized"]);
  });

  test(`d08 token expired (authenticated: ${authenticated})`, () => {
    const scenario = create();
    const times = { ...own, iat: "2026-11-01T00:00:00Z", exp: "2026-11-01T00:05:00Z" };
    const lines = [...offered(), handoff(scenario, "d08", times, PLANNER)];
    assert.deepEqual(answers(scenario, lines), [...OFFERED, "event.rejected unauthorized"]);
  });

  test(`d11 token replayed (authenticated: ${authenticated})`, () => {
    const scenario = create();
    const other = { ...PLANNER, task: "d" };
    const lines = [
      ...offered(),
      handoff(scenario, "jti-r", own, PLANNER),
      line("requested", other),
      line("accepted", other),
      handoff(scenario, "jti-r", { ...own, task_id: "d" }, other),
      handoff(scenario, "jti-r", own, PLANNER),
    ];
    assert.deepEqual(answers(scenario, lines), [
      ...OFFERED,
      "accept",
      "accept",
      "accept",
      "event.rejected unauthorized",
      "event.rejected unauthorized",
    ]);
  });

  test(`d15 one owner (authenticated: ${authenticated})`, () => {
    const scenario = create();
    const other = { ...PLANNER, to: "agent:other" };
    const lines = [
      ...offered(),
      handoff(scenario, "j1", own, PLANNER),
      line("requested", other),
      line("accepted", other),
      handoff(scenario, "j2", { ...own, sub: "agent:other" }, other),
    ];
    assert.deepEqual(answers(scenario, lines), [
      ...OFFERED,
      "accept",
      "event.rejected protocol_error",
      "event.rejected unauthorized",
      "event.rejected protocol_error",
    ]);
    assert.equal(standing(scenario), "handed_off agent:worker");
  });

  test(`d19 handoff redelivered (authenticated: ${authenticated})`, () => {
    const scenario = create();
    const sent = handoff(scenario, "j19", own, { ...PLANNER, id: "evt_d19_h" });
    assert.deepEqual(answers(scenario, [...offered(), sent, sent]), [
      ...OFFERED,
      "accept",
      "duplicate",
    ]);
  });
}

test("d13 escalation after rejection", () => {
  const unopened = start().slice(1);
  const lines = [
    ...unopened,
    line("requested"),
    line("rejected"),
    line("escalated", { to: "agent:supervisor" }),
  ];
  const taken = lines.slice(0, -1).map(() => "accept");
  assert.deepEqual(answers(tokenWorld(), lines), [...taken, "event.rejected protocol_error"]);
});
