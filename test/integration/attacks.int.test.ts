/** Who tries what on a server with accounts: it fails, the log is as it was, and honest work goes on. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HEADER, INTAKE_SUBJECT_LENGTH_MAX } from "@harmovela/bus";
import { generateTokenKeys, openTokenKeys } from "@harmovela/host";
import { headers } from "@nats-io/transport-node";
import { eventually } from "../chaos/deadline.ts";
import { type Answer, envelope } from "../chaos/sender.ts";
import { assertOnlyGrown, Stage } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

const HONEST = "agent:honest";
const MALLORY = "agent:mallory";
const WORKER = "agent:worker";
const DEADLINE_MS = 20_000;

let stage: Stage;
let mallory: PlainAgent;
let honest: PlainAgent;
let neighbour: PlainAgent;
let tasks = 0;

before(async () => {
  stage = await Stage.open([
    ["acme", HONEST],
    ["acme", MALLORY],
    ["acme", WORKER],
    ["beta", HONEST],
  ]);
  mallory = await stage.agent("acme", MALLORY);
  honest = await stage.agent("acme", HONEST);
  neighbour = await stage.agent("beta", HONEST);
  await honest.honest("task_before");
  await neighbour.honest("task_before");
});
after(() => stage[Symbol.asyncDispose]());

/** Entries of the attacker's own work and refusals of it, and what a service notes about itself. */
function isExplained(task: string): (entry: string) => boolean {
  return (entry) => {
    const [, subject = ""] = entry.split(" ");
    if (/^hv\.-\.ctl\.[a-z]+\.(?:position|refused)$/.test(subject)) {
      return !entry.includes('{"stream":');
    }
    const own = new RegExp(`^hv\\.acme\\.log\\.tasks\\.${MALLORY}\\.-\\.task\\.`);
    if (own.test(subject) && entry.includes(`"task_id":"${task}`)) return true;
    return /^hv\.acme\.log\.\w+\.service:[\w-]+\.agent:(?:mallory|honest)\.[\w.]*rejected$/.test(
      subject,
    );
  };
}

/** What one agent says in `honest`. */
const HONEST_ENVELOPES = 4;

/**
 * The attack; then the attacker works honestly, and nothing else has happened. `stored`: how many
 * messages of the attack the intakes take, to be refused by a service.
 */
async function attacked(
  attack: (task: string) => Promise<void>,
  { stored = 0 } = {},
): Promise<void> {
  tasks += 1;
  const task = `task_after_${tasks}`;
  const earlier = await stage.picture();
  await attack(`${task}_too`);
  await mallory.nats.flush();
  await mallory.honest(task);
  const later = await stage.picture();
  assertOnlyGrown(earlier, later, isExplained(task));
  assert.equal(later.asked - earlier.asked, stored + HONEST_ENVELOPES);
  for (const { host } of stage.services) {
    assert.equal(host.status().role, "leader");
    assert.deepEqual(host.status().alarms, []);
  }
}

const PUBLISHED: Record<string, readonly string[]> = {
  "the source of another agent in the subject": [`hv.acme.in.tasks.${HONEST}.task.submitted`],
  "the intake of another tenant": [
    `hv.beta.in.tasks.${MALLORY}.task.submitted`,
    `hv.beta.in.tasks.${HONEST}.task.submitted`,
  ],
  "an entry into a log": [`hv.acme.log.tasks.${MALLORY}.-.task.completed`],
  "a control entry, as a leader writes it": ["hv.-.ctl.tasks.epoch", "hv.acme.ctl.tasks.begun"],
  "forged events of a service for observers": [
    "hv.acme.ev.tasks.service:delegation-coordinator.-.task.completed",
    `hv.acme.ev.tasks.${MALLORY}.-.task.completed`,
  ],
  "a request of one service to another": [
    "hv.acme.in.tasks.service:interruption-manager.task.failed",
  ],
  "heartbeats and reads under another name": [
    `hv.acme.live.${HONEST}.session.heartbeat`,
    `hv.acme.rpc.${HONEST}.tasks.token`,
    `hv.beta.rpc.${MALLORY}.tasks.task`,
  ],
  "what looks into streams": [
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.INFO.HV_LOG_TASKS",
    "$JS.API.CONSUMER.LIST.HV_LOG_TASKS",
  ],
  "direct gets by sequence": [
    "$JS.API.STREAM.MSG.GET.HV_LOG_TASKS",
    "$JS.API.DIRECT.GET.HV_LOG_TASKS",
    "$JS.API.STREAM.MSG.GET.HV_IN_TASKS",
  ],
  "consumers of any kind": [
    "$JS.API.CONSUMER.CREATE.HV_LOG_TASKS",
    "$JS.API.CONSUMER.CREATE.HV_LOG_TASKS.mine",
    "$JS.API.CONSUMER.CREATE.HV_LOG_TASKS.mine.hv.acme.log.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.HV_LOG_TASKS.mine",
  ],
  "messages of another's consumer, and of any": [
    "$JS.API.CONSUMER.MSG.NEXT.HV_LOG_TASKS.other",
    "$JS.API.CONSUMER.MSG.NEXT.HV_IN_TASKS.other",
    "$JS.ACK.HV_IN_TASKS.other.1.1.1.1.0",
  ],
  "streams altered, emptied and removed": [
    "$JS.API.STREAM.UPDATE.HV_LOG_TASKS",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.PURGE.HV_LOG_TASKS",
    "$JS.API.STREAM.MSG.DELETE.HV_LOG_TASKS",
    "$JS.API.STREAM.DELETE.HV_LOG_TASKS",
    "$JS.API.STREAM.LEADER.STEPDOWN.HV_LOG_TASKS",
  ],
  "the lease": ["$KV.HV_LEASES.tasks"],
  "snapshots and checkpoints": [
    "$O.HV_SNAPSHOTS.C.x",
    "$O.HV_SNAPSHOTS.M.x",
    "$O.HV_CHECKPOINTS.M.x",
  ],
  "another's inbox, and answers to another's questions": [
    `_INBOX.acme.${HONEST}.verdict`,
    `_INBOX.beta.${HONEST}.verdict`,
    "_R_.abcdef.abcdef",
  ],
  "the server's own subjects": ["$SYS.REQ.SERVER.PING", "$SRV.PING"],
};

describe("what the server forbids to publish", () => {
  for (const [what, subjects] of Object.entries(PUBLISHED)) {
    test(what, () =>
      attacked(async () => {
        for (const subject of subjects) {
          const body = JSON.stringify(envelope(HONEST, "task.submitted", "task_forged"));
          mallory.nats.publish(subject, body, { reply: mallory.inbox() });
          await mallory.forbidden("publish", subject);
          await logged(subject);
        }
      }),
    );
  }

  test("a consumer that delivers to somebody else, and one in the place of another's", () =>
    attacked(async () => {
      const [own] = await consumersOf("HV_IN_TASKS");
      assert.ok(own !== undefined, "the service reads its intake");
      for (const name of ["mine", own]) {
        const subject = `$JS.API.CONSUMER.CREATE.HV_IN_TASKS.${name}`;
        const deliver_subject = `_INBOX.beta.${HONEST}.x`;
        const config = { name, deliver_subject, ack_policy: "none", deliver_policy: "all" };
        const body = JSON.stringify({ stream_name: "HV_IN_TASKS", config });
        mallory.nats.publish(subject, body, { reply: mallory.inbox() });
        await mallory.forbidden("publish", subject);
      }
      assert.ok((await consumersOf("HV_IN_TASKS")).includes(own));
    }));

  test("a message's trace, sent where a log listens", () =>
    attacked(async () => {
      const traced = headers();
      traced.set("Nats-Trace-Dest", `hv.acme.log.tasks.${MALLORY}.-.traced`);
      mallory.nats.publish(`hv.acme.live.${MALLORY}.task.progress`, "{}", { headers: traced });
    }));
});

describe("what the server forbids to hear", () => {
  const SUBSCRIBED: Record<string, readonly string[]> = {
    everything: [">", "hv.>", "*.>"],
    "wildcards over tenants": ["hv.*.ev.>", "hv.*.live.>", "hv.*.ev.tasks.>"],
    "another tenant": ["hv.beta.ev.>", "hv.beta.live.>"],
    "another inbox": [
      "_INBOX.>",
      "_INBOX.acme.>",
      `_INBOX.acme.${HONEST}.>`,
      `_INBOX.*.${MALLORY}.>`,
    ],
    "intakes, logs and reads": ["hv.acme.in.>", "hv.acme.log.>", "hv.acme.ctl.>", "hv.acme.rpc.>"],
    "the server's own subjects": ["$JS.>", "$KV.>", "$O.>", "$SRV.>", "$SYS.>", "_R_.>"],
  };
  for (const [what, subjects] of Object.entries(SUBSCRIBED)) {
    test(what, () =>
      attacked(async () => {
        for (const subject of subjects) {
          let heard = 0;
          mallory.nats.subscribe(subject, {
            callback: (error) => {
              if (!error) heard += 1;
            },
          });
          await mallory.forbidden("subscription", subject);
          assert.equal(heard, 0);
        }
      }),
    );
  }

  test("the questions of others, as one more of the service's replicas", () =>
    attacked(async () => {
      mallory.nats.subscribe("hv.acme.rpc.*.tasks.*", {
        queue: "harmovela-tasks",
        callback: () => {},
      });
      await mallory.forbidden("subscription", "hv.acme.rpc.*.tasks.*");
    }));
});

const REFLECTED: Record<string, string> = {
  "a log": `hv.acme.log.tasks.${HONEST}.-.task.completed`,
  "a log of another tenant": `hv.beta.log.tasks.${HONEST}.-.task.completed`,
  "a control subject": "hv.-.ctl.tasks.epoch",
  "the intake of another": `hv.acme.in.tasks.${HONEST}.task.submitted`,
  "the intake of another tenant": `hv.beta.in.tasks.${HONEST}.task.submitted`,
  "the lease": "$KV.HV_LEASES.tasks",
  "a snapshot": "$O.HV_SNAPSHOTS.M.x",
  purge: "$JS.API.STREAM.PURGE.HV_LOG_TASKS",
  "the removal of an entry": "$JS.API.STREAM.MSG.DELETE.HV_LOG_TASKS",
  "the removal of a stream": "$JS.API.STREAM.DELETE.HV_LOG_TASKS",
  "an inbox of another tenant": `_INBOX.beta.${HONEST}.x`,
  "observers of another tenant": `hv.beta.ev.tasks.${HONEST}.-.task.completed`,
};

describe("a reply subject that somebody else's rights would reach", () => {
  for (const [where, reply] of Object.entries(REFLECTED)) {
    test(`${where}: of a publish, a read, a token request and in Hv-Reply-To`, async () => {
      const overheard: string[] = [];
      const ears = ["hv.beta.ev.>", `_INBOX.beta.${HONEST}.>`].map((subject) =>
        neighbour.nats.subscribe(subject, {
          callback: (_error, message) => void overheard.push(message.subject),
        }),
      );
      await neighbour.nats.flush();
      const led: string[] = [];
      const inside = stage.operator.subscribe(reply, ({ data }) =>
        led.push(Buffer.from(data).toString()),
      );
      await stage.operator.flush();
      const lease = await leaseHolder();
      // Both bad bodies are stored as the attacker's own, and nothing was put in by the server.
      await attacked(
        async () => {
          mallory.nats.publish(mallory.intake("task.submitted"), "not an envelope", { reply });
          for (const verb of ["status", "task", "token", "nothing"]) {
            mallory.nats.publish(`hv.acme.rpc.${MALLORY}.tasks.${verb}`, "{}", { reply });
          }
          const named = headers();
          named.set(HEADER.replyTo, reply);
          mallory.nats.publish(mallory.intake("task.submitted"), "nor this", { headers: named });
        },
        { stored: 2 },
      );
      assert.equal(await leaseHolder(), lease);
      await neighbour.nats.flush();
      assert.deepEqual(overheard, []);
      // The lease is renewed there all the time, by who has it.
      await stage.operator.flush();
      assert.deepEqual(
        led.filter((text) => !reply.startsWith("$KV.") || text !== lease),
        [],
        "nothing came out where services and streams are",
      );
      inside.close();
      for (const ear of ears) ear.unsubscribe();
    });
  }

  test("the reply of a read to another agent of the tenant is no envelope and no heartbeat", () =>
    attacked(async () => {
      const heard: string[] = [];
      const ear = honest.nats.subscribe("hv.acme.ev.>", {
        callback: (_error, { subject, data }) => {
          if (subject.endsWith(".forged")) heard.push(new TextDecoder().decode(data));
        },
      });
      await honest.nats.flush();
      const reply = "hv.acme.ev.tasks.service:delegation-coordinator.-.forged";
      mallory.nats.publish(`hv.acme.rpc.${MALLORY}.tasks.status`, "{}", { reply });
      await eventually(DEADLINE_MS, "the answer came", () => heard[0]);
      for (const text of heard) assert.deepEqual(Object.keys(JSON.parse(text)), ["status"]);
      ear.unsubscribe();
    }));
});

describe("what a service refuses", () => {
  test("the source of another agent, of a service and of a harness in the body", () =>
    attacked(
      async () => {
        for (const source of [HONEST, "service:interruption-manager", "harness:x"]) {
          const sent = envelope(source, "task.submitted", "task_spoofed");
          await refused("unauthorized", mallory.say(sent));
        }
      },
      { stored: 3 },
    ));

  test("another tenant in the body", () =>
    attacked(
      async () => {
        const sent = envelope(MALLORY, "task.submitted", "task_spoofed", { tenant_id: "beta" });
        await refused("unauthorized", mallory.say(sent));
      },
      { stored: 1 },
    ));

  test("another type in the subject", () =>
    attacked(
      async () => {
        const sent = envelope(MALLORY, "task.completed", "task_spoofed");
        await refused(
          "unauthorized",
          mallory.say(sent, { subject: mallory.intake("task.submitted") }),
        );
      },
      { stored: 1 },
    ));

  test("an id that somebody else will use is not taken by what fails the comparison with the subject", () =>
    attacked(
      async () => {
        const sent = envelope(HONEST, "task.progress", "task_before", { id: "evt_of_honest" });
        await refused("unauthorized", mallory.say(sent));
        // The task is over, so the refusal is the task's and not that of a repeated id.
        const { payload } = await honest.say(sent);
        assert.equal(payload.error?.code, "task_error");
      },
      { stored: 2 },
    ));

  test("the task of another: started, completed", async () => {
    for (const type of ["task.submitted", "task.accepted"]) {
      await accepted(honest.say(envelope(HONEST, type, "task_of_honest")));
    }
    await attacked(
      async () => {
        for (const type of ["task.started", "task.completed"]) {
          await refused("unauthorized", mallory.say(envelope(MALLORY, type, "task_of_honest")));
        }
      },
      { stored: 2 },
    );
  });

  test("headers as the entries of a log have them change nothing of an entry", () =>
    attacked(
      async (task) => {
        const forged = { epoch: "999", at: "1", cause: "in:1", seen: "tasks:999" };
        const more = Object.fromEntries(
          Object.entries(forged).map(([name, value]) => [
            HEADER[name as keyof typeof forged],
            value,
          ]),
        );
        const sent = envelope(MALLORY, "task.submitted", task);
        const cursor = await accepted(mallory.say(sent, { more }));
        const [stream = "", seq] = cursor.split(":");
        const entry = await stage.operator.read(stream, Number(seq));
        for (const [name, value] of Object.entries(more)) {
          assert.notEqual(entry?.header(name), value, name);
        }
      },
      { stored: 1 },
    ));

  test("bodies that are too large: for the service, for the intake", () =>
    attacked(
      async () => {
        const sent = (bytes: number) =>
          envelope(MALLORY, "task.submitted", "task_large", {
            payload: { note: "x".repeat(bytes) },
          });
        await refused("invalid_envelope", mallory.say(sent(600 * 1024)));
        const answer = await mallory.nats.request(
          mallory.intake("task.submitted"),
          JSON.stringify(sent(700 * 1024)),
          { timeout: DEADLINE_MS },
        );
        assert.match(answer.string(), /message size exceeds maximum allowed/);
      },
      { stored: 1 },
    ));

  test("deeply nested and malformed bodies", () =>
    attacked(
      async () => {
        const subject = mallory.intake("task.submitted");
        const deep = `{"payload":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
        for (const body of [deep, "{", "", '{"id":"a","id":"b"}', new Uint8Array([0xff, 0xfe])]) {
          await refused("invalid_envelope", mallory.sayBytes(body, subject));
        }
      },
      { stored: 5 },
    ));

  test("a subject that is too long", () =>
    attacked(
      async () => {
        const subject = `hv.acme.in.tasks.${MALLORY}.${"x".repeat(INTAKE_SUBJECT_LENGTH_MAX)}`;
        mallory.nats.publish(subject, "{}");
      },
      { stored: 1 },
    ));
});

describe("handoff tokens", () => {
  let used = "";
  const parties = { delegated_by: HONEST, delegated_to: WORKER, parent_task_id: "task_parent" };
  const handed = (by: string, more: object = {}) =>
    envelope(by, "delegation.handoff.completed", "task_handed", { ...parties, ...more });

  before(async () => {
    const worker = await stage.agent("acme", WORKER);
    await accepted(honest.say(envelope(HONEST, "task.submitted", "task_parent")));
    await accepted(honest.say(envelope(HONEST, "task.accepted", "task_parent")));
    await accepted(honest.say(envelope(HONEST, "task.started", "task_parent")));
    await accepted(honest.say(envelope(HONEST, "delegation.requested", "task_handed", parties)));
    await accepted(worker.say(envelope(WORKER, "delegation.accepted", "task_handed", parties)));
  });

  test("a stranger asks for one, for the party of the delegation and of another tenant", () =>
    attacked(async () => {
      for (const who of [mallory, neighbour]) {
        const { error } = await who.ask("tasks", "token", { task_id: "task_handed" });
        assert.equal((error as { code?: string }).code, "unauthorized");
      }
    }));

  test("a third party presents a stolen one, in its own name and in that of the delegator", async () => {
    const { result } = await honest.ask("tasks", "token", { task_id: "task_handed" });
    const { token: handoff_token } = result as { token: string };
    await attacked(
      async () => {
        await refused("unauthorized", mallory.say(handed(MALLORY, { handoff_token })));
        const own = { handoff_token, delegated_by: MALLORY };
        await refused("unauthorized", mallory.say(handed(MALLORY, own)));
        await refused("unauthorized", mallory.say(handed(HONEST, { handoff_token })));
      },
      { stored: 3 },
    );
    await accepted(honest.say(handed(HONEST, { handoff_token })));
    used = handoff_token;
  });

  test("one that was used, one of no algorithm, one signed by somebody else", async () => {
    const claims = {
      iss: MALLORY,
      sub: WORKER,
      task_id: "task_handed",
      iat: 1,
      exp: 9e9,
      jti: "j",
    };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const none = `${part({ alg: "none" })}.${part(claims)}.`;
    const foreign = await (await openTokenKeys(await generateTokenKeys())).sign(claims);
    await attacked(
      async () => {
        const again = await honest.say(handed(HONEST, { handoff_token: used }));
        assert.match(again.type, /rejected$/);
        for (const handoff_token of [none, foreign]) {
          const answer = await mallory.say(
            handed(MALLORY, { handoff_token, delegated_by: MALLORY }),
          );
          assert.match(answer.type, /rejected$/);
        }
      },
      { stored: 3 },
    );
  });
});

describe("what may come in and does no harm", () => {
  test("the message id of another's envelope", () =>
    attacked(
      async () => {
        const victim = envelope(HONEST, "task.progress", "task_before");
        const more = { "Nats-Msg-Id": victim.id };
        const first = await mallory.say(envelope(MALLORY, "task.progress", "task_before"), {
          more,
        });
        assert.match(first.type, /rejected$/);
        const answer = await honest.say(victim);
        assert.match(answer.type, /rejected$/);
        assert.equal(answer.payload.error?.code, "task_error", "it was judged, not swallowed");
      },
      { stored: 2 },
    ));
});

async function refused(code: string, said: Promise<Answer>): Promise<void> {
  const { type, payload } = await said;
  assert.match(type, /rejected$/);
  assert.equal(payload.error?.code, code, JSON.stringify(payload));
}

/** Its cursor. */
async function accepted(said: Promise<Answer>): Promise<string> {
  const { type, payload } = await said;
  assert.equal(type, "event.acknowledged", JSON.stringify(payload));
  return payload.cursor ?? "";
}

/** The server's log tells its operator of it. */
async function logged(subject: string): Promise<void> {
  await eventually(DEADLINE_MS, `the server's log tells of ${subject}`, () =>
    stage.server.log
      .split("\n")
      .find((line) => line.includes("Publish Violation") && line.includes(`Subject "${subject}"`)),
  );
}

async function consumersOf(stream: string): Promise<string[]> {
  const answer = await stage.operator.nats.request(`$JS.API.CONSUMER.NAMES.${stream}`, "");
  return answer.json<{ consumers: string[] | null }>().consumers ?? [];
}

async function leaseHolder(): Promise<string> {
  const body = JSON.stringify({ last_by_subj: "$KV.HV_LEASES.tasks" });
  const answer = await stage.operator.nats.request("$JS.API.STREAM.MSG.GET.KV_HV_LEASES", body);
  const { message } = answer.json<{ message: { data: string } }>();
  return Buffer.from(message.data, "base64").toString();
}
