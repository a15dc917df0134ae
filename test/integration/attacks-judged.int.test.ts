/** What reaches a service under the own name of an attacker: refused, and honest work goes on. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HEADER, INTAKE_SUBJECT_LENGTH_MAX } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { generateTokenKeys, openTokenKeys } from "@harmovela/host";
import { readAudit, type Stored } from "../../packages/host/test/audit-log.ts";
import { eventually } from "../chaos/deadline.ts";
import { envelope } from "../chaos/sender.ts";
import { accepted, DEADLINE_MS, HONEST, MALLORY, refused, Scene, WORKER } from "./attack-scene.ts";
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

  test("what says that it is signed and is not, and what nobody can check, in every domain", () =>
    attacked(
      async () => {
        const claims: Partial<Envelope>[] = [
          { source_trust: "signed" },
          {
            source_trust: "signed",
            authorization: { scheme: "jws-detached", token: "e30..AAAA" },
          },
          { authorization: { scheme: "bearer", token: "t" } },
        ];
        const fields: Record<string, Partial<Envelope>> = {
          "task.submitted": {},
          "memory.fact.added": { payload: { fact_id: "f", value: 1 } },
          "interruption.requested": { interruption_policy: "force_stop" },
        };
        for (const claim of claims) {
          for (const [type, more] of Object.entries(fields)) {
            const sent = envelope(MALLORY, type, "task_unproved", { ...more, ...claim });
            await refused("unauthorized", mallory.say(sent));
          }
        }
      },
      { stored: 9 },
    ));

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

describe("the record of all this", () => {
  test("each attack that reached a service stands in it, with what was wrong, and nothing else of the attacker", async () => {
    const read = async () => {
      const domains = ["tasks", "beliefs", "interruptions"] as const;
      const all = await Promise.all(domains.map((domain) => readAudit(stage.operator, domain)));
      const isOfMallory = ({ source, verdict }: Stored) =>
        source === MALLORY && verdict === "refused";
      const records = all.flat().filter(isOfMallory);
      const judged = records.filter(({ verb }) => verb === undefined);
      const counted = judged.reduce((sum, { count = 1 }) => sum + count, 0);
      return { judged, counted, asked: records.filter(({ verb }) => verb !== undefined) };
    };
    const { judged, counted, asked } = await eventually(DEADLINE_MS, "the record", async () => {
      const found = await read();
      const isWhole = found.counted >= mallory.refusals.length && found.asked.length > 0;
      return isWhole ? found : undefined;
    });
    assert.ok(mallory.refusals.length > 20);
    for (const { causation_id: id, payload } of mallory.refusals) {
      if (id === undefined) continue;
      const found = judged.filter(({ event_id }) => event_id === id);
      const told = found.map(({ tenant, code }) => [tenant, code]);
      assert.deepEqual(told, [["acme", payload.error?.code]], id);
    }
    assert.equal(counted, mallory.refusals.length);
    const questions = asked.map(({ verb, code }) => [verb, code]);
    assert.deepEqual(questions, [["token", "unauthorized"]]);
  });
});
