/** Who only watches, with the whole SDK: it hears and reads all of its tenant, and nothing that it says is said. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DOMAINS, intakeStream } from "@harmovela/bus";
import type { Agent, Observation } from "@harmovela/client";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { within } from "../chaos/deadline.ts";
import { readRecords } from "../chaos/stored-log.ts";
import { Stage } from "./attack-stage.ts";

const EYE = "agent:eye";
const WORKER = "agent:worker";
const DEADLINE_MS = 30_000;
const READ: readonly Domain[] = ["tasks", "beliefs", "interruptions"];

describe("an observer", () => {
  let stage: Stage;
  let eye: Agent;
  let worker: Agent;
  let task = "";
  before(async () => {
    stage = await Stage.open([
      ["acme", WORKER],
      ["acme", EYE, { kind: "observer" }],
      ["beta", WORKER],
    ]);
    worker = await stage.sdkAgent("acme", WORKER);
    eye = await stage.sdkAgent("acme", EYE);
    const beta = await stage.sdkAgent("beta", WORKER);
    await beta.submit({ target: WORKER, description: "of another tenant" });
    const handle = await worker.submit({ target: WORKER, description: "seen" });
    task = handle.id;
    await handle.accept();
    await handle.start();
    await worker.beliefs.assert("context:weather", "rain");
  });
  after(() => stage[Symbol.asyncDispose]());

  /** Entries of its tenant as they are stored. */
  async function stored(): Promise<string[]> {
    const found: string[] = [];
    for (const domain of READ)
      for (const { subject, seq } of await readRecords(stage.operator, domain))
        if (subject.startsWith("hv.acme.log.")) found.push(`HV_LOG_${domain.toUpperCase()}:${seq}`);
    return found.sort();
  }

  async function take(observation: Observation, count: number): Promise<string[]> {
    const cursors: string[] = [];
    while (cursors.length < count) {
      const { value } = await within(DEADLINE_MS, `entry ${cursors.length}`, observation.next());
      cursors.push(value?.cursor ?? "");
    }
    return cursors;
  }

  test("replays all that its tenant has said, and goes on with what is said then", async () => {
    const before = await stored();
    const all = eye.subscribe({ domains: [...READ], from: "start" });
    const live = eye.subscribe({ types: "task.*", domains: ["tasks"], from: "now" });
    await Promise.all([all.ready, live.ready]);
    const seen = await take(all, before.length);
    assert.deepEqual(seen.toSorted(), before);
    const { cursor } = (await worker.handle(task).progress({ message: "on" })) as {
      cursor: string;
    };
    assert.deepEqual(await take(live, 1), [cursor]);
    assert.deepEqual(await take(all, 1), [cursor]);
    const { result } = await eye.read("tasks", "replay", { from: "start", max: 2 });
    assert.equal((result as { entries: unknown[] }).entries.length, 2);
    await Promise.all([all.close(), live.close()]);
  });

  test("asks all services about what others do, and watches what is held true", async () => {
    assert.equal(((await eye.task(task)).result as JsonObject).owner, WORKER);
    assert.match(String(JSON.stringify((await eye.why(task)).result)), /waits|progress/);
    assert.deepEqual(await eye.interruptions.checkpoints(task), []);
    const watch = eye.beliefs.watch("context:weather");
    await watch.ready;
    await worker.beliefs.assert("context:weather", "snow");
    const { value } = await within(DEADLINE_MS, "the news", watch.next());
    assert.match(JSON.stringify(value?.envelope.payload), /snow/);
    await watch.close();
  });

  test("is told at once, with the right code, that it may say nothing", async () => {
    const asked = async (): Promise<number> => {
      let last = 0;
      for (const domain of DOMAINS)
        last += (await stage.operator.streamState(intakeStream(domain)))?.lastSeq ?? 0;
      return last;
    };
    const before = [await asked(), await stored()];
    const handle = eye.handle(task);
    const attempts: Record<string, () => Promise<unknown>> = {
      publish: () => eye.publish({ type: "task.output", task_id: task, payload: {} }),
      submit: () => eye.submit({ target: WORKER }),
      delegate: () => eye.delegate(WORKER, { description: "for me" }),
      progress: () => handle.progress(),
      cancel: () => handle.cancel({ reason: "no" }),
      child: () => handle.child({ target: WORKER }),
      assert: () => eye.beliefs.assert("context:weather", "sun"),
      retract: () => eye.beliefs.retract("context:weather"),
      interrupt: () => eye.interruptions.request(task),
      resume: () => eye.interruptions.resume(task, "ckpt_1"),
      compensate: () => eye.compensate(task, { reason: "no", description: "undo" }),
      work: () => eye.worker({ concurrency: 1 }, async () => "done"),
    };
    for (const [what, attempt] of Object.entries(attempts)) {
      await assert.rejects(within(DEADLINE_MS, `the refusal of ${what}`, attempt()), (error) => {
        assert.ok(error instanceof HarmovelaError, `${what}: ${error}`);
        assert.equal(error.code, "unauthorized", `${what}: ${error.message}`);
        assert.equal(error.retry, "never", what);
        return true;
      });
    }
    assert.equal(eye.outstanding, 0);
    assert.deepEqual([await asked(), await stored()], before);
    // It goes on watching over the same connection.
    assert.equal(((await eye.task(task)).result as JsonObject).owner, WORKER);
  });
});
