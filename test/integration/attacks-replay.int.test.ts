/** What an agent with a key tries with replays and checkpoints: it sees and changes nothing that is not its own. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { CHECKPOINT_BUCKET, type Headers } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { eventually } from "../chaos/deadline.ts";
import { envelope } from "../chaos/sender.ts";
import { DEADLINE_MS, HONEST, MALLORY, Scene } from "./attack-scene.ts";
import { TENANT_BYTES } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

interface Page {
  entries: { seq: number; subject: string; headers: Headers; data: string }[];
  next: string;
  end: string;
}

let scene: Scene;
let mallory: PlainAgent;
let honest: PlainAgent;
let neighbour: PlainAgent;

before(async () => {
  scene = await Scene.open();
  ({ mallory, honest, neighbour } = scene);
});
after(() => scene[Symbol.asyncDispose]());

async function page(who: PlainAgent, params: JsonObject, domain: Domain = "tasks"): Promise<Page> {
  const { result, error } = await who.ask(domain, "replay", params);
  assert.ok(result !== undefined, JSON.stringify(error));
  return result as unknown as Page;
}

async function refusal(
  who: PlainAgent,
  domain: Domain,
  verb: string,
  params: JsonObject,
): Promise<string> {
  const { error, result } = await who.ask(domain, verb, params);
  assert.equal(result, undefined, JSON.stringify(params));
  return String((error as { code?: string } | undefined)?.code);
}

async function walk(
  who: PlainAgent,
  filter: JsonObject,
  domain: Domain = "tasks",
): Promise<Page["entries"]> {
  const all: Page["entries"] = [];
  for (let from = "start"; ; ) {
    const { entries, next, end } = await page(who, { from, filter }, domain);
    all.push(...entries);
    if (next === end) return all;
    from = next;
  }
}

describe("replays", () => {
  test("show a tenant its own events, whole and in order, and nothing of another or of control entries", () =>
    scene.attacked(async () => {
      for (const [who, tenant] of [
        [mallory, "acme"],
        [neighbour, "beta"],
      ] as const) {
        for (const domain of ["tasks", "beliefs", "interruptions"] as const) {
          const stored = (await scene.stage.picture()).logs.get(domain) ?? [];
          const own = stored.filter((line) => line.split(" ")[1]?.startsWith(`hv.${tenant}.log.`));
          const seen = (await walk(who, {}, domain)).map(({ seq, subject, data }) =>
            [seq, subject, Buffer.from(data, "base64").toString()].join(" "),
          );
          assert.deepEqual(seen, own);
        }
      }
    }));

  test("reach nothing further by names of wildcards, dots and other subjects", () =>
    scene.attacked(async () => {
      for (const name of [
        "*",
        ">",
        "*.*",
        "-",
        "a.>",
        "beta.log.tasks.>",
        `${HONEST}.>`,
        "%2A",
        " ",
      ])
        for (const field of ["source", "target"])
          assert.deepEqual(await walk(mallory, { [field]: name }), [], `${field} ${name}`);
      for (const type of [">", "task.>", "a b", "task.*\r\nPUB x 0", "-", "", "%2A", "*a"])
        assert.equal(
          await refusal(mallory, "tasks", "replay", { from: "start", filter: { type } }),
          "invalid_query",
        );
      for (const filter of [
        "hv.beta.log.>",
        ["*"],
        { tenant: "beta" },
        { subject: "hv.>" },
        { source: 1 },
        { source: "x".repeat(4_000) },
      ] as JsonObject[string][])
        assert.equal(
          await refusal(mallory, "tasks", "replay", { from: "start", filter: filter ?? null }),
          "invalid_query",
        );
    }));

  test("begin at no position of another stream, below the beginning or beyond the end", () =>
    scene.attacked(async () => {
      for (const from of [
        "HV_LOG_BELIEFS:1",
        "HV_IN_TASKS:1",
        "KV_HV_LEASES:1",
        "HV_LOG_TASKS:-1",
        "HV_LOG_TASKS:1.5",
        "HV_LOG_TASKS:900000000000000",
        "HV_LOG_TASKS:9007199254740993",
        `HV_LOG_TASKS:${"9".repeat(300)}`,
        "HV_LOG_TASKS:",
        "-1",
        -1,
        2 ** 53,
        null,
        {},
      ])
        assert.equal(
          await refusal(mallory, "tasks", "replay", { from }),
          "invalid_query",
          String(from),
        );
      for (const max of [-1, 0.5, 1e9, "1", null])
        assert.equal(
          await refusal(mallory, "tasks", "replay", { from: "start", max }),
          "invalid_query",
        );
    }));

  test("hold a bounded number of consumers, whatever is asked for, and others are answered meanwhile", async () => {
    for (let count = 0; count < 12; count++)
      await mallory.say(envelope(MALLORY, "task.submitted", `task_seed_${count}`));
    const types = ["*", "task.*", "*.*", "task.submitted", "*.submitted"];
    const filters = Array.from({ length: 1_200 }, (_, at): JsonObject => {
      const type = types[at % 5] ?? "*";
      return at % 2 === 0 ? { type, source: MALLORY } : { type, target: `agent:${at}` };
    });
    let refused = 0;
    let largest = 0;
    await scene.attacked(async () => {
      for (let at = 0; at < filters.length; at += 50) {
        const asked = filters.slice(at, at + 50).map(async (filter) => {
          const { error } = await mallory.ask("tasks", "replay", { from: "start", filter });
          if (error === undefined) return;
          refused += 1;
          assert.equal((error as { retryable?: boolean }).retryable, true);
        });
        const { entries } = await page(honest, { from: "start", max: 1 });
        assert.equal(entries.length, 1);
        await Promise.all(asked);
        largest = Math.max(largest, await consumers());
      }
    });
    assert.ok(refused > 0, "not all at a time");
    // Eight of the attacker's, one of the honest one's, and those by which services follow the log.
    assert.ok(largest <= 8 + 1 + 6, `${largest} consumers`);
  });
});

const text = (at: string) => Buffer.from(at).toString("base64");
const digestOf = (of: string) => `sha-256:${createHash("sha256").update(of).digest("hex")}`;

function put(task: string, id: string, of: string, more: JsonObject = {}): JsonObject {
  return {
    task_id: task,
    checkpoint_id: id,
    made_at: "2026-11-30T10:00:00Z",
    bytes: of.length,
    digest: digestOf(of),
    at: 0,
    data: text(of),
    ...more,
  };
}

describe("checkpoints", () => {
  const TASK = "task_kept";
  const name = (id: string) => ({ task_id: TASK, checkpoint_id: id });
  const bucket = () => scene.stage.operator.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
  const stored = async () => (await bucket().list()).map((blob) => blob.name);

  before(async () => {
    let cursor = "";
    for (const type of ["task.submitted", "task.accepted", "task.started"]) {
      const { payload } = await honest.say(envelope(HONEST, type, TASK));
      cursor = payload.cursor ?? "";
    }
    const { result, error } = await honest.ask("interruptions", "checkpoint_put", {
      ...put(TASK, "own", "mine"),
      seen: cursor,
    });
    assert.deepEqual(result, { stored: true }, JSON.stringify(error));
  });

  test("are stored, read and removed by who has the task alone", () =>
    scene.attacked(async () => {
      for (const who of [mallory, neighbour]) {
        for (const [verb, params] of [
          ["checkpoint_put", put(TASK, "own", "forged")],
          ["checkpoint_put", put(TASK, "new", "forged")],
          ["checkpoint_put", put("task_nobody_knows", "new", "forged")],
          ["checkpoint_get", name("own")],
          ["checkpoint_get", name("none")],
          ["checkpoint_newest", { task_id: TASK }],
          ["checkpoint_remove", name("own")],
        ] as const)
          assert.equal(await refusal(who, "interruptions", verb, params), "unauthorized", verb);
      }
      assert.deepEqual(await stored(), [`acme.${TASK}.own`]);
      const { result } = await honest.ask("interruptions", "checkpoint_get", name("own"));
      assert.deepEqual(result, { bytes: 4, data: text("mine") });
    }));

  test("are never written over, not even by who has the task", () =>
    scene.attacked(async () => {
      const again = put(TASK, "own", "mine");
      const { result } = await honest.ask("interruptions", "checkpoint_put", again);
      assert.deepEqual(result, { stored: true }, "said again it is the same");
      const other = put(TASK, "own", "else");
      assert.equal(
        await refusal(honest, "interruptions", "checkpoint_put", other),
        "invalid_query",
      );
    }));

  test("are what they say they are, and no larger than one may be", () =>
    scene.attacked(async () => {
      for (const bad of [
        { digest: digestOf("other") },
        { digest: "sha-256:00" },
        { bytes: 5 * 1024 * 1024 * 1024 },
        { bytes: -1 },
        { bytes: 3 },
        { at: -1 },
        { at: 2 },
        { data: "no base64!" },
        { data: 1 },
        { data: "" },
        { made_at: "yesterday" },
        { checkpoint_id: "" },
        { checkpoint_id: "x".repeat(200) },
        { seen: "HV_LOG_BELIEFS:1" },
      ] as JsonObject[]) {
        const asked = { ...put(TASK, "bad", "mine"), ...bad };
        const code = await refusal(honest, "interruptions", "checkpoint_put", asked);
        assert.equal(code, "invalid_query", JSON.stringify(bad));
      }
      assert.deepEqual(await stored(), [`acme.${TASK}.own`]);
    }));

  test("that are never whole are held for a few at a time, and do not stand in anybody's way", () =>
    scene.attacked(async () => {
      const answers = [];
      for (let count = 0; count < 10; count++)
        answers.push(
          await honest.ask(
            "interruptions",
            "checkpoint_put",
            put(TASK, `part_${count}`, "part", { bytes: 1_000 }),
          ),
        );
      const begun = answers.filter(({ result }) => result !== undefined);
      assert.deepEqual(
        begun.map(({ result }) => result),
        Array(4).fill({ received: 4 }),
      );
      for (const { error } of answers.slice(4))
        assert.equal((error as { retryable?: boolean }).retryable, true);
      const whole = put(TASK, "whole", "all of it");
      const { result } = await honest.ask("interruptions", "checkpoint_put", whole);
      assert.deepEqual(result, { stored: true });
      // What its holder wants removed goes.
      await honest.ask("interruptions", "checkpoint_remove", name("whole"));
      assert.deepEqual(await stored(), [`acme.${TASK}.own`]);
    }));

  test("that are registered of a live task stay, whoever wants them removed", async () => {
    const payload = { task_id: TASK };
    const request = envelope(HONEST, "interruption.requested", TASK, {
      interruption_policy: "save_and_stop",
      payload,
    });
    await honest.say(request);
    const about = { causation_id: request.id, payload };
    await honest.say(envelope(HONEST, "interruption.acknowledged", TASK, about));
    const saved = { ...payload, bytes_saved: 4, digest: digestOf("mine") };
    const { type } = await honest.say(
      envelope(HONEST, "interruption.saved", TASK, {
        causation_id: request.id,
        checkpoint_id: "own",
        checkpoint_at: "2026-11-30T10:00:00Z",
        payload: { ...saved, location: `hv-checkpoint:acme.${TASK}.own` },
      }),
    );
    assert.equal(type, "event.acknowledged");
    await scene.attacked(async () => {
      const { result } = await honest.ask("interruptions", "checkpoint_remove", name("own"));
      assert.deepEqual(result, { removed: false });
      assert.deepEqual(await stored(), [`acme.${TASK}.own`]);
    });
  });

  test("fill the room of one's own tenant at most, which nobody else is told of", async () => {
    const FILLING = "task_filling";
    const large = "x".repeat(50_000);
    const store = async (who: PlainAgent, id: string): Promise<JsonObject> =>
      who.ask("interruptions", "checkpoint_put", {
        ...put(FILLING, id, large),
        seen: seen[who.tenant] ?? "",
      });
    const seen: Record<string, string> = {};
    for (const who of [mallory, neighbour]) {
      const { payload } = await who.say(envelope(who.name, "task.submitted", FILLING));
      seen[who.tenant] = payload.cursor ?? "";
    }
    const { result, error: none } = await store(mallory, "one");
    assert.deepEqual(result, { stored: true }, JSON.stringify(none));
    for (const id of ["two", "three"]) {
      const { error } = (await store(mallory, id)) as { error?: JsonObject };
      assert.equal(error?.code, "internal_error");
      assert.equal(error.retryable, false);
      const { reason, quota_bytes } = error.details as JsonObject;
      assert.deepEqual([reason, quota_bytes], ["checkpoint_quota", TENANT_BYTES]);
    }
    // Claimed without a task, or for another's, it takes no room.
    for (const [who, task_id] of [
      [mallory, TASK],
      [mallory, "task_nobody_knows"],
      [neighbour, TASK],
    ] as const) {
      const asked = { task_id, checkpoint_id: "claimed", bytes: 1 };
      assert.equal(await refusal(who, "interruptions", "checkpoint_room", asked), "unauthorized");
    }
    assert.deepEqual((await store(neighbour, "one")).result, { stored: true });
    const use = async (who: PlainAgent, more: JsonObject = {}) =>
      ((await who.ask("interruptions", "checkpoint_use", more)).result as JsonObject).checkpoints;
    assert.equal(await use(mallory), 2);
    assert.equal(await use(neighbour), 1);
    assert.equal(await use(neighbour, { tenant: "acme", tenant_id: "acme" }), 1);
    assert.deepEqual((await stored()).sort(), [
      `acme.${FILLING}.one`,
      `acme.${TASK}.own`,
      `beta.${FILLING}.one`,
    ]);
  });
});

async function consumers(): Promise<number> {
  return eventually(DEADLINE_MS, "the consumers", async () => {
    const answer = await scene.stage.operator.nats.request(
      "$JS.API.CONSUMER.NAMES.HV_LOG_TASKS",
      "",
    );
    return answer.json<{ consumers: string[] | null }>().consumers?.length;
  });
}
