import type { BadLog } from "./bad-log.ts";

/** One log per rule of single events: contract, stamps, identity, ids, refusals, begun plans. */
export const badEvents: BadLog[] = [
  ...(
    [
      ["no role", { roles: [] }],
      ["another role", { roles: ["viewer"] }],
      ["another tenant", { target_tenant_id: "beta" }],
      ["no tenant", { target_tenant_id: undefined }],
    ] as const
  ).map(
    ([why, fields]): BadLog => ({
      rule: "governance-denied",
      why,
      build: (log) => {
        const actor = { actor_id: "a", requested_action: "task.submit", roles: ["publisher"] };
        const within = { tenant_id: "acme", target_tenant_id: "acme" };
        log.submit("t", { ...actor, ...within, ...fields });
        return log.last;
      },
    }),
  ),
  {
    rule: "governance-denied",
    why: "a command to another tenant",
    build: (log) => {
      const to = { target: "agent:b", correlation_id: "c", payload: { command: "x" } };
      const across = { tenant_id: "acme", target_tenant_id: "beta", roles: ["tenant-admin"] };
      log.send("command.requested", "agent:a", { ...to, ...across });
      return log.last;
    },
  },
  {
    rule: "governance-denied",
    why: "a proved sender names another as the actor",
    build: (log) => {
      log.epoch({ authenticated: true });
      log.submit("t", { actor_id: "agent:other" });
      return log.last;
    },
  },
  {
    rule: "envelope-invalid",
    why: "created_at is no date",
    build: (log) => {
      log.send("environment.observed", "sensor:s", { created_at: "yesterday" });
      return log.last;
    },
  },
  {
    rule: "envelope-invalid",
    why: "the type is not registered",
    build: (log) => {
      log.send("policy.violated", "agent:worker");
      return log.last;
    },
  },
  {
    rule: "envelope-invalid",
    why: "no UTF-8",
    build: (log) => {
      log.send(
        "environment.observed",
        "sensor:s",
        {},
        { data: new Uint8Array([0x7b, 0xff, 0x7d]) },
      );
      const seq = log.last;
      log.send("environment.observed", "sensor:s");
      return seq;
    },
  },
  {
    rule: "payload-invalid",
    why: "progress beyond 1",
    build: (log) => {
      log.running("task_a");
      log.task("progress", "task_a", "agent:worker", {
        payload: { task_id: "task_a", progress: 1.5 },
      });
      return log.last;
    },
  },
  ...(["source", "target", "type", "tenant"] as const).map((part, index): BadLog => {
    const subject = [
      "hv.acme.log.tasks.sensor:other.agent:a.environment.observed",
      "hv.acme.log.tasks.sensor:s.agent:b.environment.observed",
      "hv.acme.log.tasks.sensor:s.agent:a.environment.changed",
      "hv.other.log.tasks.sensor:s.agent:a.environment.observed",
    ][index];
    return {
      rule: "subject-disagrees",
      why: `another ${part}`,
      build: (log) => {
        const fields = { target: "agent:a", tenant_id: "acme" };
        log.send("environment.observed", "sensor:s", fields, subject ? { subject } : {});
        return log.last;
      },
    };
  }),
  {
    rule: "cursor-wrong",
    why: "the cursor is that of the entry before",
    build: (log) => {
      log.submit("task_a");
      log.send("environment.observed", "sensor:s", {}, { cursor: `HV_LOG_TASKS:${log.last}` });
      return log.last;
    },
  },
  {
    rule: "sequence-gap",
    why: "a number is left out",
    build: (log) => {
      log.submit("task_a");
      log.send("environment.observed", "sensor:s", {}, { sequence: 3 });
      return log.last;
    },
  },
  {
    rule: "sequence-gap",
    why: "a tenant does not begin at 1",
    build: (log) => {
      log.submit("task_a");
      log.tenant = "other";
      log.send("environment.observed", "sensor:s", {}, { sequence: 2 });
      return log.last;
    },
  },
  {
    rule: "id-duplicate",
    why: "an id is accepted twice",
    build: (log) => {
      log.send("environment.observed", "sensor:s", { id: "evt_same" });
      log.wait(60_000).send("environment.changed", "sensor:s", { id: "evt_same" });
      return log.last;
    },
  },
  {
    rule: "id-duplicate",
    why: "the id of a plan that is under way is accepted",
    also: ["plan-final-cause", "plan-outcome", "task-live-descendants"],
    build: (log) => {
      log.running("task_p");
      const plan = log.draft("task.cancelled", "agent:boss", { task_id: "task_p" });
      log.send("environment.observed", "sensor:s", { id: plan.id });
      log.running("task_c", { parent: "task_p" });
      log.begin(plan);
      return log.last;
    },
  },
  {
    rule: "id-refused",
    why: "an id is accepted that a refusal occupies",
    build: (log) => {
      log.refuse("evt_no");
      log.send("environment.observed", "sensor:s", { id: "evt_no" });
      return log.last;
    },
  },
  {
    rule: "id-derived-form",
    why: "the service owes an event under an agent's id",
    build: (log) => {
      log.submit("task_a", { payload: { timeout_ms: 0 } });
      log.timeOut("task_a", { id: "evt_timeout" });
      return log.last;
    },
  },
  {
    rule: "id-derived-form",
    why: "a refusal under an agent's id",
    build: (log) => {
      log.refuse("evt_no", { id: "evt_refusal" });
      return log.last;
    },
  },
  {
    rule: "id-agent-form",
    why: "an agent uses a derived id",
    build: (log) => {
      log.send("environment.observed", "sensor:s", { id: `hv_${"0".repeat(26)}` });
      return log.last;
    },
  },
  {
    rule: "owed-source",
    why: "an agent's event is owed",
    build: (log) => {
      log.submit("task_a", { payload: { timeout_ms: 0 } });
      log.timeOut("task_a", { source: "agent:worker" });
      return log.last;
    },
  },
  {
    rule: "owed-type",
    why: "the service completes a task by itself",
    build: (log) => {
      log.running("task_a");
      log.owe("deadline:task_a", "task.completed", { task_id: "task_a" });
      return log.last;
    },
  },
  {
    rule: "refusal-form",
    why: "the error says nothing of a retry",
    also: ["payload-invalid"],
    build: (log) => {
      log.refuse("evt_no", { payload: { error: { code: "task_error", message: "no" } } });
      return log.last;
    },
  },
  {
    rule: "refusal-form",
    why: "nobody is told",
    build: (log) => {
      log.refuse("evt_no", { target: undefined });
      return log.last;
    },
  },
  {
    rule: "refusal-form",
    why: "two refused events",
    also: ["payload-invalid"],
    build: (log) => {
      log.refuse("evt_no", { causation_id: "evt_other" });
      return log.last;
    },
  },
  {
    rule: "begun-form",
    why: "the envelope is missing",
    build: (log) => {
      log.running("task_p");
      log.push({
        cause: "in:9",
        kind: "begun",
        body: { plan: { id: "evt_p", kind: "task.cancelled" } },
      });
      return log.last;
    },
  },
  {
    rule: "begun-form",
    why: "the plan has another id than its event",
    build: (log) => {
      log.running("task_p");
      const envelope = log.draft("task.cancelled", "agent:boss", { task_id: "task_p" });
      const plan = { id: "evt_other", kind: "task.cancelled", envelope };
      log.push({ cause: "in:9", kind: "begun", body: { plan } });
      return log.last;
    },
  },
  {
    rule: "begun-form",
    why: "a cascade that completes",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      log.begin(log.draft("task.completed", "agent:worker", { task_id: "task_p" }));
      return log.last;
    },
  },
];
