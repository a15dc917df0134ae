/** Who tries what at the broker: it fails, the log is as it was, and honest work goes on. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HEADER } from "@harmovela/bus";
import { headers } from "@nats-io/transport-node";
import { eventually } from "../chaos/deadline.ts";
import { envelope } from "../chaos/sender.ts";
import { DEADLINE_MS, HONEST, MALLORY, Scene } from "./attack-scene.ts";
import type { Stage } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

let scene: Scene;
let stage: Stage;
let mallory: PlainAgent;
let honest: PlainAgent;
let neighbour: PlainAgent;

before(async () => {
  scene = await Scene.open();
  ({ stage, mallory, honest, neighbour } = scene);
});
after(() => scene[Symbol.asyncDispose]());

const attacked: Scene["attacked"] = (attack, more) => scene.attacked(attack, more);

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
    `hv.acme.rpc.${HONEST}.tasks.replay`,
    `hv.beta.rpc.${HONEST}.tasks.replay`,
    `hv.acme.rpc.${HONEST}.interruptions.checkpoint_get`,
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
          for (const verb of ["status", "task", "token", "replay", "nothing"]) {
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
