import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  agentPermissions,
  DOMAINS,
  observerPermissions,
  servicePermissions,
} from "../src/index.ts";

/** Whether a subject pattern of a list covers a subject. */
function covers(pattern: string, subject: string): boolean {
  const [wanted, tokens] = [pattern.split("."), subject.split(".")];
  return (
    wanted.every((token, at) =>
      token === ">"
        ? tokens.length > at
        : tokens[at] !== undefined && (token === "*" || token === tokens[at]),
    ) &&
    (wanted.at(-1) === ">" || wanted.length === tokens.length)
  );
}
const allows = (list: readonly string[], subject: string): boolean =>
  list.some((pattern) => covers(pattern, subject));

describe("permissions", () => {
  test("an agent has its own subjects, its tenant's entries and its inbox, and nothing else", () => {
    assert.deepEqual(agentPermissions({ tenant: "acme", agent: "agent:a" }), {
      publish: [
        ...DOMAINS.map((domain) => `hv.acme.in.${domain}.agent:a.>`),
        "hv.acme.live.agent:a.>",
        "hv.acme.rpc.agent:a.>",
      ],
      subscribe: ["hv.acme.ev.>", "hv.acme.live.>", "_INBOX.acme.agent:a.>"],
    });
  });

  test("an agent with scopes has what these name, and its inbox", () => {
    const identity = { tenant: "acme", agent: "agent:a" };
    const scopes = ["write:tasks", "read:tasks", "read:beliefs", "subscribe:task.*"];
    assert.deepEqual(agentPermissions({ ...identity, scopes }), {
      publish: [
        "hv.acme.in.tasks.agent:a.>",
        "hv.acme.live.agent:a.>",
        "hv.acme.rpc.agent:a.tasks.>",
        "hv.acme.rpc.agent:a.beliefs.>",
      ],
      subscribe: [
        "hv.acme.ev.tasks.>",
        "hv.acme.ev.beliefs.>",
        "hv.acme.live.>",
        "_INBOX.acme.agent:a.>",
      ],
    });
    assert.deepEqual(agentPermissions({ ...identity, scopes: ["write:beliefs"] }), {
      publish: ["hv.acme.in.beliefs.agent:a.>"],
      subscribe: ["_INBOX.acme.agent:a.>"],
    });
  });

  test("who hears some participants only hears these, and asks nothing", () => {
    const scopes = ["read:tasks", "read:agent:b", "read:*.>:x"];
    const { publish, subscribe } = observerPermissions({
      tenant: "acme",
      agent: "agent:a",
      scopes,
    });
    assert.deepEqual(publish, []);
    assert.deepEqual(subscribe, [
      "hv.acme.ev.tasks.agent:b.>",
      "hv.acme.ev.tasks.%2A%2E%3E:x.>",
      "hv.acme.live.agent:b.>",
      "hv.acme.live.%2A%2E%3E:x.>",
      "_INBOX.acme.agent:a.>",
    ]);
  });

  test("an observer asks and hears, and says nothing", () => {
    assert.deepEqual(observerPermissions({ tenant: "acme", agent: "agent:a" }).publish, [
      "hv.acme.rpc.agent:a.>",
    ]);
  });

  test("no name widens a list", () => {
    for (const name of ["*", ">", "a.b", "a.>", "-", "ä ", "%2A"]) {
      for (const { publish, subscribe } of [
        agentPermissions({ tenant: name, agent: "agent:a" }),
        agentPermissions({ tenant: "acme", agent: name }),
      ]) {
        for (const pattern of [...publish, ...subscribe]) {
          assert.match(pattern, /^[^*> ]+\.>$/);
          assert.doesNotMatch(pattern, /\.-\./);
        }
      }
    }
  });

  test("of a service the one connection appends and answers nobody, the other one only answers", () => {
    const identity = { domain: "tasks", service: "service:coordinator" } as const;
    const writer = servicePermissions({ ...identity, connection: "writer" }).publish;
    const answerer = servicePermissions({ ...identity, connection: "answerer" }).publish;
    const answers = ["_INBOX.acme.agent:a.x", "_R_.abc.def"];
    const writes = [
      "hv.acme.log.tasks.agent:a.-.task.completed",
      "hv.-.ctl.tasks.epoch",
      "hv.acme.in.beliefs.service:coordinator.x",
      "$KV.HV_LEASES.tasks",
      "$O.HV_SNAPSHOTS.M.x",
      "$JS.API.STREAM.PURGE.HV_LOG_TASKS",
    ];
    for (const subject of writes) {
      assert.ok(allows(writer, subject), subject);
      assert.equal(allows(answerer, subject), false, subject);
    }
    for (const subject of answers) {
      assert.equal(allows(writer, subject), false, subject);
      assert.ok(allows(answerer, subject), subject);
    }
  });

  test("a service writes in no other domain, not even its lease", () => {
    const { publish } = servicePermissions({
      domain: "beliefs",
      service: "service:tracker",
      connection: "writer",
    });
    for (const subject of [
      "hv.acme.log.tasks.agent:a.-.task.completed",
      "hv.-.ctl.tasks.epoch",
      "hv.acme.in.tasks.service:coordinator.x",
      "$KV.HV_LEASES.tasks",
      "$O.HV_CHECKPOINTS.M.x",
      "$JS.API.STREAM.PURGE.HV_LOG_TASKS",
      "$JS.API.STREAM.DELETE.HV_LOG_BELIEFS",
    ]) {
      assert.equal(allows(publish, subject), false, subject);
    }
  });
});
