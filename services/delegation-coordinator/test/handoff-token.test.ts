import assert from "node:assert/strict";
import { test } from "node:test";
import { formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { issueToken } from "../src/index.ts";
import {
  accepted,
  claims,
  del,
  escalated,
  handedOff,
  requested,
  signed,
  standing,
  tokenWorld,
} from "./delegation-support.ts";
import { event } from "./family-support.ts";
import { ev, type World } from "./support.ts";

const SECOND = 1000;
const DAY = 86_400;

function handoff(scenario: World, over: Partial<Record<string, unknown>>, jti = "jti_x") {
  const token = signed(claims(scenario.now, jti, over));
  return scenario.when(del("handoff.completed", { token }));
}

const at = (scenario: World) => scenario.now / SECOND;

/** What each check refuses; the rest of the token is in order. */
const REFUSED: [string, string, (now: number) => JsonObject][] = [
  ["another issuer", "issuer", () => ({ iss: "agent:mallory" })],
  ["no issuer", "issuer", () => ({ iss: null })],
  ["another delegate", "delegate", () => ({ sub: "agent:other" })],
  ["no delegate", "delegate", () => ({ sub: null })],
  ["another task", "binding", () => ({ task_id: "d" })],
  ["another parent", "binding", () => ({ parent_task_id: "q" })],
  ["another tenant", "binding", () => ({ tenant: "beta" })],
  ["no task", "binding", () => ({ task_id: null })],
  ["no parent", "binding", () => ({ parent_task_id: null })],
  ["exp equal to now", "expiry", (now) => ({ exp: now })],
  ["exp long ago", "expiry", () => ({ iat: 1, exp: 2 })],
  ["no exp", "expiry", () => ({ exp: null })],
  ["a life of more than a day", "expiry", (now) => ({ exp: now + DAY + 1 })],
  ["iat 60.1 s ahead", "timeliness", (now) => ({ iat: now + 60.1 })],
  ["no iat", "timeliness", () => ({ iat: null })],
  ["no jti", "malformed", () => ({ jti: null })],
  ["a jti of more than 128 bytes", "malformed", () => ({ jti: "j".repeat(129) })],
  ["an exp that is no time", "malformed", () => ({ exp: "soon" })],
  ["an exp beyond numbers", "malformed", () => ({ exp: 1e300 })],
  ["an iss that is no text", "malformed", () => ({ iss: 7 })],
];

const GOOD: [string, (now: number) => JsonObject][] = [
  ["its tenant", () => ({ tenant: "acme" })],
  ["exp a moment away", (now) => ({ exp: now + 0.001 })],
  ["a life of exactly a day", (now) => ({ exp: now + DAY })],
  ["J1 iat 59.9 s ahead", (now) => ({ iat: now + 59.9 })],
  ["J1 iat 60 s ahead", (now) => ({ iat: now + 60 })],
  ["a jti of 128 bytes", () => ({ jti: "j".repeat(128) })],
  [
    "times in RFC 3339",
    (now) => ({
      iat: new Date(now * SECOND).toISOString(),
      exp: new Date((now + 60) * SECOND).toISOString(),
    }),
  ],
];

for (const [what, check, over] of REFUSED) {
  test(`a token with ${what} fails the check ${check}`, () => {
    const scenario = accepted();
    handoff(scenario, over(at(scenario))).rejected("unauthorized", { check });
    assert.equal(standing(scenario), "accepted agent:planner");
    handoff(scenario, {}).accepted();
  });
}

for (const [what, over] of GOOD) {
  test(`a token with ${what} is good`, () => {
    const scenario = accepted();
    handoff(scenario, over(at(scenario))).accepted();
    assert.equal(standing(scenario), "handed_off agent:worker");
  });
}

test("J9 a refusal for a skewed clock says which claim and by how much, and nothing of the token", () => {
  const scenario = accepted();
  const { outcome } = handoff(scenario, { iat: at(scenario) + 61 }, "jti_secret");
  assert.ok("reject" in outcome.decision);
  const { details } = outcome.decision.reject;
  assert.equal(details?.claim, "iat");
  assert.equal(details?.early_by_ms, 61_000);
  assert.doesNotMatch(JSON.stringify(outcome), /jti_secret/u);
});

test("J3 a jti is used once, whichever delegation it is presented for", () => {
  const scenario = handedOff("evt_won").given(
    del("requested", { task: "d" }),
    del("accepted", { task: "d" }),
  );
  const again = signed(claims(scenario.now, "jti_1", { task_id: "d" }));
  scenario
    .when(del("handoff.completed", { task: "d", token: again }))
    .rejected("unauthorized", { check: "replay", used_by: "evt_won" });
  const same = signed(claims(scenario.now, "jti_1"));
  scenario.when(del("handoff.completed", { token: same })).rejected("unauthorized", {
    check: "replay",
  });
});

test("J5 a wrong presentation uses nothing up", () => {
  const scenario = accepted();
  handoff(scenario, { sub: "agent:other" }, "jti_j").rejected("unauthorized");
  const token = signed(claims(scenario.now, "jti_j"));
  scenario.when(del("handoff.completed", { by: "agent:stranger", token })).rejected("unauthorized");
  handoff(scenario, {}, "jti_j").accepted();
});

test("the same handoff again is a duplicate and no replay, also when its id is forgotten", () => {
  const scenario = accepted();
  const token = signed(claims(scenario.now, "jti_1"));
  const sent = del("handoff.completed", { token });
  scenario.given(sent);
  const seq = scenario.log.length;
  scenario.when(sent).duplicate(seq);
  const input = { envelope: sent, tenant: scenario.tenant, source: sent.source, intake: 99 };
  const facts = { kind: "verified", claims: claims(scenario.now, "jti_1") } as const;
  const ctx = { now: scenario.now, deriveId: () => "hv_none" };
  const decision = scenario.decider.decide(scenario.state, { ...input, token: facts }, ctx);
  assert.deepEqual(decision, { duplicate: { seq } });
});

test("a used jti is remembered for as long as its token and the skew last, then forgotten", () => {
  const scenario = handedOff();
  const known = () => scenario.state.tenants.get(scenario.tenant)?.delegations.tokens.known.size;
  const next = (task: string) =>
    scenario.given(
      del("requested", { task }),
      del("accepted", { task }),
      del("handoff.completed", { task }),
    );
  next("d").wait(660_000);
  next("e");
  assert.equal(known(), 1);
  scenario.wait(1);
  next("f");
  assert.equal(known(), 0);
});

test("an opaque token is taken without a profile and proves nothing", () => {
  const scenario = accepted();
  scenario.when(del("handoff.completed", { token: "ht_abc123" })).accepted();
  scenario.given(del("requested", { task: "d" }), del("accepted", { task: "d" }));
  scenario.when(del("handoff.completed", { task: "d", token: "ht_abc123" })).accepted();
});

test("an opaque token is refused where a profile demands a proof", () => {
  for (const profile of ["harmovela.coordination.v1", "harmovela.security.v1"]) {
    const scenario = accepted({ defaultProfiles: [profile] });
    scenario
      .when(del("handoff.completed", { token: "ht_abc123" }))
      .rejected("unauthorized", { check: "malformed" });
    scenario
      .when(del("handoff.completed", { token: "ht_abc123", session: "made up" }))
      .rejected("unauthorized", { check: "malformed" });
    handoff(scenario, {}).accepted();
  }
});

test("a forged token is refused everywhere", () => {
  accepted()
    .when(del("handoff.completed", { token: "forged" }))
    .rejected("unauthorized", { check: "malformed" });
});

test("the sender cannot claim a proof", () => {
  const scenario = accepted();
  const claimed = { handoff_proof: { jti: "jti_victim", exp: 4e12 } };
  scenario.given(del("handoff.completed", { token: "ht_abc", more: claimed }));
  assert.equal(scenario.state.tenants.get(scenario.tenant)?.delegations.tokens.known.size, 0);
});

test("I11 an escalation voids the old token, in a handoff and in a query", () => {
  const scenario = accepted();
  const token = signed(claims(scenario.now, "jti_old"));
  scenario.given(del("escalated", { by: "agent:worker", from: "agent:worker", to: "agent:boss" }));
  scenario
    .when(del("handoff.completed", { token }))
    .rejected("unauthorized", { check: "superseded" });

  const handed = handedOff();
  const used = signed(claims(handed.now, "jti_1"));
  handed.when(status("agent:worker", used)).accepted();
  handed.given(del("escalated", { by: "agent:worker", from: "agent:worker", to: "agent:boss" }));
  handed.when(status("agent:worker", used)).rejected("unauthorized", { check: "superseded" });
});

let asked = 0;

function status(by: string, token: string) {
  asked += 1;
  return event("query.requested", {
    source: by,
    target: "agent:boss",
    correlation_id: `corr_${asked}`,
    task_id: "c",
    handoff_token: token,
    payload: { query_scope: "status" },
  });
}

test("a query is asked with the task's own token, by whom the task came to", () => {
  const scenario = handedOff();
  const good = signed(claims(scenario.now, "jti_1"));
  scenario.when(status("agent:worker", good)).accepted();
  scenario.when(status("agent:planner", good)).rejected("unauthorized", { check: "delegate" });
  scenario
    .when(status("agent:worker", signed(claims(scenario.now, "jti_2"))))
    .rejected("unauthorized", { check: "superseded" });
  scenario
    .when(status("agent:worker", signed(claims(scenario.now, "jti_1", { exp: 1 }))))
    .rejected("unauthorized", { check: "expiry" });
  scenario.when(status("agent:worker", "forged")).rejected("unauthorized", { check: "malformed" });
  scenario.when(status("agent:worker", "ht_opaque")).accepted();
  const { decision } = scenario.when(status("agent:stranger", good)).outcome;
  assert.ok("reject" in decision && decision.as === "query.rejected");
});

test("C14 an owner whose own offer was refused asks with the token by which the task came to it", () => {
  for (const times of [1, 2]) {
    const scenario = handedOff();
    const own = signed(claims(scenario.now, "jti_1"));
    const offer = { from: "agent:worker", to: "agent:other" };
    for (let count = 0; count < times; count += 1) {
      scenario.given(del("requested", offer));
      scenario.when(status("agent:worker", own)).rejected("unauthorized", { check: "superseded" });
      scenario.given(del("rejected", offer));
    }
    scenario.when(status("agent:worker", own)).accepted();
    scenario.when(status("agent:other", own)).rejected("unauthorized", { check: "delegate" });
    scenario
      .when(status("agent:worker", signed(claims(scenario.now, "jti_2"))))
      .rejected("unauthorized", { check: "superseded" });
    scenario.when(del("requested", { ...offer, token: own })).accepted();
    scenario.given(del("accepted", offer), del("handoff.completed", offer));
    scenario.when(status("agent:worker", own)).rejected("unauthorized", { check: "superseded" });
  }
});

test("C14 an offer that expired leaves the owner its token, an escalation that was refused does not", () => {
  const scenario = handedOff();
  const own = signed(claims(scenario.now, "jti_1"));
  const offer = { from: "agent:worker", to: "agent:other" };
  const deadline = formatInstant(scenario.now + 500);
  scenario.given(del("requested", { ...offer, payload: { deadline } })).settle(scenario.now + 500);
  scenario.when(status("agent:worker", own)).accepted();
  for (const before of [[], [del("requested", { ...offer, to: "agent:first" })]]) {
    const escalated = handedOff().given(
      ...before,
      del("escalated", { by: "agent:worker", ...offer }),
      del("rejected", offer),
    );
    escalated.when(status("agent:worker", own)).rejected("unauthorized", { check: "superseded" });
  }
});

test("with its task the token of a query ends", () => {
  const scenario = handedOff().given(
    ev("started", "c", { by: "agent:worker" }),
    ev("completed", "c", { by: "agent:worker" }),
  );
  scenario
    .when(status("agent:worker", signed(claims(scenario.now, "jti_1"))))
    .rejected("unauthorized", { check: "superseded" });
});

function ask(scenario: World, asker: string, params: JsonObject = { task_id: "c" }) {
  const { state, tenant, now } = scenario;
  return issueToken(state, { tenant, asker, params, now });
}

function issue(scenario: World, asker = "agent:planner") {
  const answer = ask(scenario, asker);
  assert.ok("issue" in answer, JSON.stringify(answer));
  const { issue: body } = answer;
  const cause = { owed: body.jti };
  scenario.append({ kind: "token_issued", body, cause, tenant: scenario.tenant });
  return answer.issue;
}

test("a token is issued to the delegator of an accepted delegation, and is good for its handoff", () => {
  const scenario = accepted();
  const issued = issue(scenario);
  const { iss, sub, task_id, parent_task_id } = issued;
  assert.deepEqual(
    { iss, sub, task_id, parent_task_id },
    { iss: "agent:planner", sub: "agent:worker", task_id: "c", parent_task_id: "p" },
  );
  assert.equal(issued.exp - issued.iat, 600);
  assert.notEqual(issue(scenario).jti, issued.jti);
  const token = signed({ ...issued });
  scenario.when(del("handoff.completed", { token })).accepted();
});

test("a token is issued to nobody else, and at no other time", () => {
  const codeOf = (scenario: World, asker: string, params?: JsonObject) => {
    const answer = ask(scenario, asker, params);
    return "refused" in answer ? answer.refused.code : "issued";
  };
  assert.equal(codeOf(accepted(), "agent:worker"), "unauthorized");
  assert.equal(codeOf(accepted(), "agent:stranger"), "unauthorized");
  assert.equal(codeOf(tokenWorld(), "agent:planner"), "unauthorized");
  assert.equal(codeOf(requested(), "agent:planner"), "protocol_error");
  assert.equal(codeOf(escalated(), "agent:planner"), "protocol_error");
  assert.equal(codeOf(handedOff(), "agent:planner"), "protocol_error");
  const closing = accepted().given(ev("cancel.requested", "c", { by: "agent:probe" }));
  assert.equal(codeOf(closing, "agent:planner"), "task_error");
  for (const ttl_ms of [0, -1, 86_400_001, 1.5, "60000"]) {
    const params = { task_id: "c", ttl_ms };
    assert.equal(codeOf(accepted(), "agent:planner", params), "invalid_query");
  }
  assert.equal(codeOf(accepted(), "agent:planner", {}), "invalid_query");
});

test("an issued token is void after rejection and a new offer to the same delegate", () => {
  const scenario = accepted();
  const token = signed({ ...issue(scenario) });
  scenario.given(del("rejected"), del("requested"), del("accepted"));
  scenario
    .when(del("handoff.completed", { token }))
    .rejected("unauthorized", { check: "superseded" });
  scenario.when(del("handoff.completed", { token: signed({ ...issue(scenario) }) })).accepted();
});
