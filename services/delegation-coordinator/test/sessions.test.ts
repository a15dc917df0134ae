import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import {
  answers,
  derived,
  errorOf,
  event,
  ofSession,
  opened,
  openSession,
  sessionOf,
} from "./family-support.ts";
import { ev, payloadOf, SERVICE, world } from "./support.ts";

const ARS = "harmovela.runtime-semantics.v1";
const CORE = "harmovela.core.v1";

test("4.3 an opening is answered by the service to the opener with what was negotiated", () => {
  const scenario = world().given(
    opened("s", { profiles: [ARS, "harmovela.unheard.v1"] }, { tenant_id: "acme" }),
  );
  const [ready, ...more] = derived(scenario);
  assert.deepEqual(more, []);
  assert.equal(ready?.type, "session.ready");
  assert.equal(ready?.source, SERVICE);
  assert.equal(ready?.target, "agent:a");
  assert.equal(ready?.session_id, "s");
  assert.equal(ready?.tenant_id, "acme");
  assert.equal(ready?.causation_id, scenario.events()[0]?.envelope.id);
  const capabilities = payloadOf(ready).capabilities as Record<string, unknown>;
  assert.equal(capabilities.protocol, "harmovela");
  assert.deepEqual(capabilities.profiles, [CORE, ARS]);
  assert.deepEqual(
    capabilities.delivery_modes,
    (capabilities.delivery as { modes: unknown }).modes,
  );
  assert.equal(sessionOf(scenario, "s").state, "ready");
  assert.deepEqual(sessionOf(scenario, "s").profiles, [CORE, ARS]);
});

test("b01: a closed session refuses everything, its reopening too", () => {
  const lines = [
    opened("s", { profiles: [CORE, ARS] }, { target: "harness:harmovela" }),
    ofSession("closed", "s", { reason: "done" }),
    event("environment.observed", { session_id: "s" }),
    ev("submitted", "task_late", { more: { session_id: "s" } }),
    opened("s", { profiles: [CORE, ARS] }, { target: "harness:harmovela" }),
  ];
  assert.deepEqual(answers(world(), lines), [
    "accept",
    "> session.ready",
    "accept",
    "event.rejected session_closed",
    "event.rejected session_closed",
    "event.rejected session_closed",
  ]);
});

test("b03: a required profile that is missing ends the session and it never becomes ready", () => {
  const required = "harmovela.nonexistent.v9";
  const scenario = world().given(
    opened("s", { profiles: [CORE, ARS, required], required_profiles: [required] }),
  );
  const said = derived(scenario);
  assert.deepEqual(
    said.map(({ type }) => type),
    ["session.error"],
  );
  assert.equal(errorOf(said[0]).code, "unsupported_profile");
  assert.deepEqual((errorOf(said[0]).details as { required: unknown }).required, [required]);
  assert.equal(sessionOf(scenario, "s").state, "error");
  scenario.when(event("environment.observed", { session_id: "s" })).rejected("session_closed");
});

test("4.1 coordination stands on security, which needs proved senders", () => {
  const coordination = "harmovela.coordination.v1";
  const offer = { profiles: [coordination] };
  assert.deepEqual(sessionOf(openSession(world(), "s", offer), "s").profiles, []);
  // By the connection, or because one process speaks for everybody (9.6).
  for (const known of [{ authenticated: true }, { processIdentity: true }]) {
    const proved = openSession(world(known), "s", offer);
    assert.deepEqual(sessionOf(proved, "s").profiles, [
      coordination,
      CORE,
      ARS,
      "harmovela.security.v1",
    ]);
  }
});

test("1.2 who opens a session in another major version is told which one is spoken here", () => {
  for (const version of ["9.9", "1.0", "1", "latest", "00.2", ""]) {
    const opening = { ...opened("s"), payload: { session_id: "s", version } };
    const [said, ...more] = derived(world().given(opening));
    assert.deepEqual(more, []);
    assert.equal(said?.type, "session.error", version);
    const { code, retryable, details } = errorOf(said);
    assert.deepEqual([code, retryable], ["unsupported_version", false]);
    assert.deepEqual((details as { supported: unknown }).supported, ["0.2"]);
  }
  for (const version of ["0.1", "0.2", "0.3", "0.2.1", "0"]) {
    const opening = { ...opened("s"), payload: { session_id: "s", version } };
    assert.equal(derived(world().given(opening))[0]?.type, "session.ready", version);
  }
});

test("4.2 the fields of a profile are required for the sessions that negotiated it, and no others", () => {
  const scenario = openSession(world(), "s", { profiles: [ARS] });
  openSession(scenario, "plain");
  let offers = 0;
  const offer = (session_id?: string) => {
    offers += 1;
    return event("delegation.requested", {
      ...(session_id === undefined ? {} : { session_id }),
      task_id: `t${offers}`,
    });
  };
  const missing = ["delegated_by", "delegated_to", "parent_task_id"];
  scenario.when(offer("s")).rejected("invalid_envelope", { missing });
  scenario.when(offer("plain")).accepted();
  scenario.when(offer("never opened")).accepted();
  scenario.when(offer()).accepted();
});

test("4.2 a deployment sets the profiles of events without session, or of one that nobody opened", () => {
  const scenario = openSession(world({ defaultProfiles: [ARS] }), "plain");
  const bare = event("delegation.requested", { task_id: "t" });
  scenario.when(bare).rejected("invalid_envelope");
  scenario.when({ ...bare, id: "other", session_id: "made up" }).rejected("invalid_envelope");
  scenario.when({ ...bare, id: "another", session_id: "plain" }).accepted();
});

test("5.1 unknown sessions are let in, or refused when strict", () => {
  const observed = () => event("environment.observed", { session_id: "s" });
  world().when(observed()).accepted();
  const strict = world({ strictSessions: true });
  strict.when(observed()).rejected("session_error", { session_id: "s" });
  strict.when(event("environment.observed")).accepted();
  strict.when(event("capabilities.requested", { session_id: "s" })).accepted();
  openSession(strict, "s").when(observed()).accepted();
});

test("5.1 a live session is not opened again, by nobody", () => {
  const scenario = openSession(world(), "s");
  scenario.when(opened("s")).rejected("session_error", { state: "ready" });
  scenario.when(opened("s", {}, { source: "agent:b" })).rejected("session_error");
});

test("5.1 sessions stand side by side, and ids belong to their tenant", () => {
  const scenario = openSession(openSession(world(), "one"), "two");
  scenario.given(ofSession("closed", "one"));
  scenario.when(event("environment.observed", { session_id: "two" })).accepted();
  const elsewhere = scenario.judge(event("environment.observed", { session_id: "one" }), "other");
  assert.ok("accept" in elsewhere.decision);
});

test("5.1 only its initiator and services speak for a session", () => {
  for (const name of ["closed", "error", "ready"]) {
    const payload: JsonObject =
      name === "error" ? { error: { code: "session_error", message: "" } } : {};
    const scenario = openSession(world(), "s");
    const said = (source: string) => ofSession(name, "s", payload, { source });
    scenario.when(said("agent:mallory")).rejected("unauthorized");
    scenario.when(said("agent:a")).accepted();
    assert.equal(sessionOf(scenario, "s").state, name === "ready" ? "ready" : name);
  }
  const scenario = openSession(world(), "s");
  scenario.given(ofSession("closed", "s", {}, { source: "service:interruption-manager" }));
  assert.equal(sessionOf(scenario, "s").state, "closed");
});

test("5.1 what a service says about an ended session is heard", () => {
  const scenario = openSession(world(), "s").given(ofSession("closed", "s"));
  scenario
    .when(event("environment.observed", { session_id: "s", source: "service:other" }))
    .accepted();
});

test("a session that nobody opened cannot be closed, and can be opened afterwards", () => {
  const scenario = world();
  scenario.when(ofSession("closed", "s")).rejected("session_error");
  scenario.when(opened("s")).accepted();
});

test("two session ids in one envelope are refused", () => {
  world()
    .when(opened("s", {}, { session_id: "other" }))
    .rejected("invalid_envelope", { path: "payload.session_id" });
});

test("an echo of a harness is logged and changes nothing", () => {
  const source = "harness:harmovela";
  const scenario = world().given(
    ofSession("ready", "s", { capabilities: { profiles: [ARS] } }, { source }),
    opened("s"),
  );
  scenario.given(ofSession("ready", "s", { capabilities: { profiles: [ARS] } }, { source }));
  assert.deepEqual(sessionOf(scenario, "s").profiles, []);
  scenario.settle();
  scenario.given(ofSession("closed", "s", {}, { source }));
  assert.equal(sessionOf(scenario, "s").state, "ready");
});

test("with authentication on, only the runtime speaks as a harness", () => {
  const source = "harness:harmovela";
  const scenario = world({ authenticated: true });
  scenario.when(event("environment.observed", { source })).rejected("unauthorized");
});

test("a session that ends before it was answered is not answered any more", () => {
  const scenario = world().given(opened("s"), ofSession("closed", "s"));
  assert.deepEqual(derived(scenario), []);
});

test("an answer that cannot be written leaves the session open, and the service goes on", () => {
  const scenario = world().given(opened("s"));
  const owed = scenario.owed();
  assert.ok(owed && "event" in owed);
  scenario.fail(owed.event.id);
  assert.deepEqual(derived(scenario), []);
  assert.equal(sessionOf(scenario, "s").state, "opened");
});

test("4.3 capabilities are declared to whoever asks the bus, before any opening too", () => {
  const scenario = world();
  for (const target of [undefined, "harness:aep", SERVICE]) {
    const asked = event("capabilities.requested", {
      session_id: "never",
      payload: null,
      ...(target === undefined ? {} : { target }),
    });
    const [declared] = derived(scenario.given(asked));
    assert.equal(declared?.type, "capabilities.declared");
    assert.equal(declared?.target, "agent:a");
    assert.equal(payloadOf(declared).spec_version, "0.2");
  }
  scenario.given(event("capabilities.requested", { target: "agent:b" }));
  assert.deepEqual(derived(scenario), []);
});

test("4.3 of two policies the stricter one rules, dimension by dimension", () => {
  const policy = {
    budget: { max_actions: 10, warning_ratio: 0.8 },
    allowed_actions: ["read", "write"],
    termination: { on_budget_exhausted: "warn" },
  };
  const scenario = world({ policy }).given(
    opened("s", {
      budget: { max_actions: 50, max_duration_ms: 1000, warning_ratio: 0.5 },
      timeouts: { task: 7 },
      allowed_actions: ["write", "delete"],
      termination: { on_budget_exhausted: "fail" },
    }),
  );
  const capabilities = payloadOf(derived(scenario)[0]).capabilities as Record<string, unknown>;
  assert.deepEqual(
    Object.fromEntries(
      ["budget", "timeouts", "allowed_actions", "termination"].map((key) => [
        key,
        capabilities[key],
      ]),
    ),
    {
      budget: { max_actions: 10, warning_ratio: 0.5, max_duration_ms: 1000 },
      timeouts: { task: 7 },
      allowed_actions: ["write"],
      termination: { on_budget_exhausted: "fail" },
    },
  );
});

test("4.3 an exhausted budget may not be ignored at L3", () => {
  const termination = { on_budget_exhausted: "ignore" };
  const [strict] = derived(world().given(opened("s", { level: "L3", termination })));
  assert.equal(errorOf(strict).code, "invalid_capability");
  const [lenient] = derived(world().given(opened("s", { termination })));
  assert.equal(lenient?.type, "session.ready");
});

test("a policy that would not fit into the answer is refused", () => {
  const [refused] = derived(world().given(opened("s", { allowed_actions: ["x".repeat(70_000)] })));
  assert.equal(errorOf(refused).code, "invalid_capability");
});

test("a terminal session is forgotten with the log that ended it", () => {
  const { retentionMs } = DEFAULT_TASK_SETTINGS;
  const scenario = openSession(world(), "s").given(ofSession("closed", "s"));
  scenario.wait(retentionMs).given(event("environment.observed"));
  scenario.when(opened("s")).rejected("session_closed");
  scenario.wait(1).given(event("environment.observed"));
  scenario.when(opened("s")).accepted();
});
