import type { BadLog } from "./bad-log.ts";
import { created, ready, session, sessionError, subscribe, unsubscribe } from "./family-log.ts";

const SEMANTICS = "harmovela.runtime-semantics.v1";

/** One log per rule of sessions and subscriptions. */
export const badSessions: BadLog[] = [
  ...(["session.opened", "environment.observed", "session.closed"] as const).map(
    (type): BadLog => ({
      rule: "session-closed",
      why: `${type} after the end`,
      build: (log) => {
        session(log, "opened", "s1");
        ready(log, "s1");
        session(log, "closed", "s1");
        const name = type.slice("session.".length);
        if (type.startsWith("session.")) session(log, name, "s1");
        else log.send(type, "agent:a", { session_id: "s1" });
        return log.last;
      },
    }),
  ),
  {
    rule: "session-closed",
    why: "ready said by an agent after an error about its required profile",
    build: (log) => {
      session(log, "opened", "s1", {
        payload: { capabilities: { required_profiles: ["harmovela.unheard.v1"] } },
      });
      sessionError(log, "s1", "unsupported_profile");
      session(log, "ready", "s1", {
        payload: { capabilities: { protocol: "harmovela", spec_version: "0.2", transports: [] } },
      });
      return log.last;
    },
  },
  {
    rule: "session-closed",
    why: "a cascade begins in a session that has ended",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      session(log, "opened", "s1");
      session(log, "closed", "s1");
      const fields = { task_id: "task_p", session_id: "s1", payload: { task_id: "task_p" } };
      log.begin(log.draft("task.cancelled", "agent:boss", fields));
      return log.last;
    },
  },
  {
    rule: "session-reopened",
    why: "opened twice",
    build: (log) => {
      session(log, "opened", "s1");
      session(log, "opened", "s1");
      return log.last;
    },
  },
  {
    rule: "session-owner",
    why: "closed by another agent",
    build: (log) => {
      session(log, "opened", "s1");
      session(log, "closed", "s1", { source: "agent:b" });
      return log.last;
    },
  },
  {
    rule: "session-unknown",
    why: "an event of a session that nobody opened, where sessions are strict",
    build: (log) => {
      log.epoch({ strictSessions: true });
      log.send("environment.observed", "sensor:s", { session_id: "s1" });
      return log.last;
    },
  },
  {
    rule: "profile-fields",
    why: "an offer in a session that nobody opened, where the deployment sets profiles",
    build: (log) => {
      log.epoch({ defaultProfiles: [SEMANTICS] });
      const offer = { task_id: "task_c", delegated_by: "agent:a" };
      log.send("delegation.requested", "agent:a", { session_id: "made up", ...offer });
      return log.last;
    },
  },
  {
    rule: "session-answer",
    why: "ready without an opening",
    build: (log) => {
      ready(log, "s1");
      return log.last;
    },
  },
  {
    rule: "session-answer",
    why: "ready twice",
    build: (log) => {
      session(log, "opened", "s1");
      ready(log, "s1");
      ready(log, "s1");
      return log.last;
    },
  },
  {
    rule: "session-answer",
    why: "ready after an error about a required profile",
    build: (log) => {
      const capabilities = { required_profiles: ["harmovela.unheard.v1"] };
      session(log, "opened", "s1", { payload: { capabilities } });
      sessionError(log, "s1", "unsupported_profile");
      ready(log, "s1");
      return log.last;
    },
  },
  {
    rule: "session-profiles",
    why: "ready without a required profile",
    build: (log) => {
      const capabilities = { required_profiles: ["harmovela.unheard.v1"] };
      session(log, "opened", "s1", { payload: { capabilities } });
      ready(log, "s1");
      return log.last;
    },
  },
  {
    rule: "session-profiles",
    why: "ready with a profile that nobody asked for",
    build: (log) => {
      session(log, "opened", "s1");
      ready(log, "s1", { profiles: [SEMANTICS] });
      return log.last;
    },
  },
  {
    rule: "session-timeout",
    why: "lost a moment before three intervals",
    build: (log) => {
      session(log, "opened", "s1", { payload: { capabilities: { heartbeat_interval_ms: 100 } } });
      ready(log, "s1", { heartbeat_interval_ms: 100 });
      log.wait(299);
      sessionError(log, "s1", "session_timeout");
      return log.last;
    },
  },
  {
    rule: "session-timeout",
    why: "lost though no heartbeats were agreed",
    build: (log) => {
      session(log, "opened", "s1");
      ready(log, "s1");
      log.wait(1_000_000);
      sessionError(log, "s1", "session_timeout");
      return log.last;
    },
  },
  {
    rule: "profile-fields",
    why: "an offer to nobody under nothing, where its session agreed on more",
    build: (log) => {
      session(log, "opened", "s1", { payload: { capabilities: { profiles: [SEMANTICS] } } });
      ready(log, "s1", { profiles: ["harmovela.core.v1", SEMANTICS] });
      log.send("delegation.requested", "agent:a", {
        session_id: "s1",
        task_id: "task_c",
        delegated_by: "agent:a",
      });
      return log.last;
    },
  },
  {
    rule: "subscription-answer",
    why: "created without a request",
    build: (log) => {
      created(log, "sub_1", "evt_never");
      return log.last;
    },
  },
  {
    rule: "subscription-answer",
    why: "created twice for one request",
    build: (log) => {
      subscribe(log, "sub_1");
      created(log, "sub_2", "evt_1");
      return log.last;
    },
  },
  {
    rule: "subscription-cancel",
    why: "cancelled twice",
    build: (log) => {
      session(log, "opened", "s1");
      subscribe(log, "sub_1", "s1");
      session(log, "closed", "s1");
      unsubscribe(log, "sub_1");
      unsubscribe(log, "sub_1");
      return log.last;
    },
  },
  {
    rule: "subscription-cancel",
    why: "its session goes on",
    build: (log) => {
      session(log, "opened", "s1");
      subscribe(log, "sub_1", "s1");
      unsubscribe(log, "sub_1");
      return log.last;
    },
  },
  {
    rule: "subscription-owner",
    why: "asked for in the session of another agent",
    build: (log) => {
      session(log, "opened", "s1", { source: "agent:b" });
      ready(log, "s1");
      subscribe(log, "sub_1", "s1");
      return log.last - 1;
    },
  },
  {
    rule: "subscription-owner",
    why: "cancelled by another agent",
    build: (log) => {
      subscribe(log, "sub_1");
      log.send("subscription.cancelled", "agent:b", { payload: { subscription_id: "sub_1" } });
      return log.last;
    },
  },
];
