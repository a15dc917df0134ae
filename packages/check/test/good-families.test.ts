/** Sessions and what happens in them, kept by every rule: the checker finds nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog } from "../src/index.ts";
import { clean } from "./clean.ts";
import {
  answer,
  ask,
  budget,
  call,
  cost,
  ready,
  session,
  sessionError,
  settle,
  subscribe,
  unsubscribe,
} from "./family-log.ts";
import { LogBuilder, STREAM } from "./log-builder.ts";

const DAY = 86_400_000;
const FAILED = "hv.acme.ctl.tasks.obligation_failed";

describe("a good log of requests", () => {
  it("open beyond its window, when its target is known or it is answered or excused", () => {
    const log = new LogBuilder();
    ask(log, "command.requested", { target: "agent:late", correlation_id: "late" });
    ask(log, "query.requested", { target: "agent:never", correlation_id: "excused" });
    log.control("obligation_failed", { id: "any", reason: "no room" }, { subject: FAILED });
    log.submit("t", { source: "agent:late" });
    ask(log, "query.requested", { target: "agent:late", correlation_id: "known" });
    log.wait(60_000).task("started", "t");
    ask(log, "command.requested", { target: "agent:never", correlation_id: "open" });
    clean(log);
  });

  it("of actors who are granted what they ask for", () => {
    const log = new LogBuilder();
    const asked = { actor_id: "a", requested_action: "task.submit", tenant_id: "acme" };
    const own = { ...asked, target_tenant_id: "acme" };
    log.submit("t1", { ...own, roles: ["viewer", "publisher"] });
    const across = { ...asked, target_tenant_id: "beta" };
    log.submit("t2", { ...across, roles: ["cross-tenant-operator"] });
    log.submit("t3", { actor_id: "a", tenant_id: "acme" });
    clean(log);
  });

  it("of proved senders, whose roles the log does not tell", () => {
    const log = new LogBuilder();
    log.epoch({ authenticated: true });
    const asked = { requested_action: "task.submit", target_tenant_id: "acme" };
    log.submit("t1", { ...asked, source: "agent:a", actor_id: "agent:a" });
    clean(log);
  });
});

describe("a good log of sessions", () => {
  it("opened, ready, confirmed, at work, closed; its subscriptions end with it", () => {
    const log = new LogBuilder();
    const profiles = ["harmovela.runtime-semantics.v1"];
    session(log, "opened", "s1", { payload: { capabilities: { profiles } } });
    ready(log, "s1", { profiles: ["harmovela.core.v1", ...profiles] });
    subscribe(log, "sub_1", "s1");
    subscribe(log, "sub_2", "s1");
    subscribe(log, "sub_3");
    log.send("environment.observed", "agent:a", { session_id: "s1" });
    log.send("subscription.cancelled", "agent:a", { payload: { subscription_id: "sub_2" } });
    log.send("subscription.cancelled", "agent:b", { payload: { subscription_id: "sub_never" } });
    session(log, "closed", "s1");
    unsubscribe(log, "sub_1");
    clean(log);
  });

  it("refused, lost after three intervals, never opened, or said by a service", () => {
    const log = new LogBuilder();
    const capabilities = { required_profiles: ["harmovela.unheard.v1"] };
    session(log, "opened", "s1", { payload: { capabilities } });
    sessionError(log, "s1", "unsupported_profile");
    session(log, "opened", "s2", { payload: { capabilities: { heartbeat_interval_ms: 100 } } });
    ready(log, "s2", { heartbeat_interval_ms: 100 });
    log.wait(300);
    sessionError(log, "s2", "session_timeout");
    log.send("environment.observed", "sensor:s", { session_id: "s3" });
    session(log, "closed", "s4");
    log.send("environment.observed", "service:other", { id: log.derivedId(), session_id: "s4" });
    clean(log);
  });

  it("a subscription whose creation failed still ends with its session", () => {
    const log = new LogBuilder();
    session(log, "opened", "s1");
    const payload = { types: ["task.*"] };
    log.send("subscription.requested", "agent:a", { session_id: "s1", payload });
    const body = { id: log.derivedId(), reason: "too large" };
    log.push({ cause: `owed:${body.id}`, kind: "obligation_failed", body });
    session(log, "closed", "s1");
    const ended = { session_id: "s1", payload: { subscription_id: "sub_1" } };
    log.owe("cancelled:sub_1", "subscription.cancelled", ended);
    clean(log);
  });

  it("an id comes back when the ended session has been forgotten", () => {
    const log = new LogBuilder();
    session(log, "closed", "s1");
    log.wait(31 * DAY);
    session(log, "opened", "s1");
    clean(log);
  });

  it("an echo of the runtime changes nothing", () => {
    const log = new LogBuilder();
    session(log, "opened", "s1", { source: "harness:h" });
    session(log, "opened", "s1");
    session(log, "closed", "s1", { source: "harness:h" });
    ready(log, "s1");
    ask(log, "command.requested");
    answer(log, "command.rejected", { by: "harness:h" });
    answer(log, "query.response", { by: "harness:h", correlation_id: "c9" });
    settle(log, "command.accepted");
    answer(log, "command.completed");
    clean(log);
  });
});

describe("a good log of requests", () => {
  it("commands: accepted by the service or the target, completed, failed, refused in time", () => {
    const log = new LogBuilder();
    for (const type of ["command.completed", "command.failed", "command.rejected"]) {
      ask(log, "command.requested");
      if (type !== "command.rejected") settle(log, "command.accepted");
      answer(log, type);
    }
    ask(log, "command.requested");
    answer(log, "command.accepted", {
      correlation_id: undefined,
      payload: { correlation_id: "c1" },
    });
    answer(log, "command.completed");
    ask(log, "command.requested", { payload: { negotiation_window_ms: 100 } });
    log.wait(100);
    settle(log, "command.rejected");
    log.epoch({ negotiationWindowMs: 50 });
    ask(log, "query.requested");
    log.wait(50);
    settle(log, "query.rejected");
    clean(log);
  });

  it("queries: snapshots that grow, or have no order", () => {
    const log = new LogBuilder();
    for (const snapshot_version of [1, 1, 2, "snap_9", "snap_10", "other", 3]) {
      ask(log, "query.requested");
      answer(log, "query.response", { payload: { snapshot_version } });
    }
    ask(log, "query.requested", { payload: { query_scope: "elsewhere" } });
    answer(log, "query.response", { payload: { snapshot_version: 1 } });
    ask(log, "query.requested");
    answer(log, "query.error");
    clean(log);
  });

  it("tool calls: through every state, ended by either side, and without a name", () => {
    const log = new LogBuilder();
    for (const words of [
      ["accepted", "started", "progress", "output", "completed"],
      ["started", "failed"],
      ["rejected"],
    ]) {
      call(log, "requested", "agent:a");
      for (const word of words) call(log, word);
    }
    call(log, "requested", "agent:a");
    call(log, "cancel.requested", "agent:a");
    call(log, "cancelled", "agent:a");
    log.send("tool.call.progress", "tool:other");
    clean(log);
  });

  it("budgets: spent to the last bit, raised, in both forms; unknown ones cost nothing", () => {
    const log = new LogBuilder();
    budget(log);
    // Rounded as doubles are, these would come to more than 10.
    cost(log, 9.1);
    for (let more = 0; more < 3; more += 1) cost(log, 0.3);
    cost(log, 0);
    budget(log, "adjusted", "agent:a", 12);
    budget(log, "exhausted", "agent:b");
    cost(log, 2);
    cost(log, 1_000, { budget_id: "b_unknown" });
    log.send("adaptation.budget.established", "agent:a", {
      payload: { scope_type: "task", scope_id: "t", budget: { max_cost_usd_millicents: 5 } },
    });
    cost(log, 5, { budget_id: "task:t" });
    clean(log);
  });

  it("that begins in the middle, when it is read leniently", () => {
    const log = new LogBuilder();
    session(log, "opened", "s1");
    ready(log, "s1");
    subscribe(log, "sub_1", "s1");
    ask(log, "command.requested");
    settle(log, "command.accepted");
    answer(log, "command.completed");
    call(log, "requested", "agent:a");
    call(log, "started");
    call(log, "completed");
    session(log, "closed", "s1");
    unsubscribe(log, "sub_1");
    const records = log.records();
    for (let cut = 1; cut < records.length; cut += 1) {
      const options = { domain: "tasks", stream: STREAM, lenient: true } as const;
      assert.deepEqual(checkLog(records.slice(cut), options).findings, [], `from ${cut}`);
    }
  });
});
