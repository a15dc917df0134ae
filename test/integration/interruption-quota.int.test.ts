/** A tenant that fills its room for checkpoints: refused by name, through the manager and directly, and nobody else. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { CHECKPOINT_BUCKET, connectBus, type JetStreamBus } from "@harmovela/bus";
import {
  type Agent,
  type AgentOptions,
  connect,
  type DelegationHandle,
  type JobContext,
} from "@harmovela/client";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { eventually, within } from "../chaos/deadline.ts";
import { cli } from "./cli-process.ts";
import { Stack } from "./interruption-support.ts";

const DEADLINE_MS = 30_000;
/** Of the bytes, two are too much for a tenant. */
const TENANT_BYTES = 100_000;
const STATE = new Uint8Array(50_000);

interface UnderWay {
  handle: DelegationHandle;
  ctx: JobContext;
}

/** Jobs of one tenant that wait until they are stopped. */
class Crew implements AsyncDisposable {
  readonly agent: Agent;
  readonly #begun: JobContext[] = [];

  private constructor(agent: Agent) {
    this.agent = agent;
  }

  static async open(
    servers: string,
    tenant: string,
    access: AgentOptions["access"],
  ): Promise<Crew> {
    const options = { servers, tenant, agent: "agent:crew", drainMs: 0 };
    const crew = new Crew(await connect(access === undefined ? options : { ...options, access }));
    await crew.agent.worker({ concurrency: 4 }, async (_job, ctx) => {
      crew.#begun.push(ctx);
      await ctx.progress({ message: "waiting" });
      if (!ctx.signal.aborted) await once(ctx.signal, "abort");
      throw ctx.signal.reason;
    });
    return crew;
  }

  async job(): Promise<UnderWay> {
    const before = this.#begun.length;
    const handle = await this.agent.delegate("agent:crew", { description: "wait" });
    const ctx = await eventually(DEADLINE_MS, "it has begun", async () => this.#begun[before]);
    return { handle, ctx };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent.close();
  }
}

const isOverQuota = (error: unknown): boolean =>
  error instanceof HarmovelaError && error.code === "quota_exceeded";

describe("the room of a tenant", () => {
  let stack: Stack;
  let bus: JetStreamBus;
  before(async () => {
    stack = await Stack.open({ store: { tenantBytes: TENANT_BYTES } });
    bus = await connectBus({ servers: stack.server.url, name: "test" });
    await eventually(DEADLINE_MS, "the store is made", async () =>
      (await bus.streamState(`OBJ_${CHECKPOINT_BUCKET}`)) === undefined ? undefined : true,
    );
  });
  after(async () => {
    await bus.close();
    await stack[Symbol.asyncDispose]();
  });

  const stored = async (tenant: string): Promise<string[]> => {
    const blobs = await bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 }).list();
    return blobs.map(({ name }) => name).filter((name) => name.startsWith(`${tenant}.`));
  };

  // First, so that these lie there when the manager counts.
  test("is counted from the bucket: what somebody put there directly is in the way of its tenant alone", async () => {
    const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1 });
    for (const at of [1, 2]) await blobs.put(`direct.task.made_up_${at}`, STATE);
    await using direct = await Crew.open(stack.server.url, "direct", "services");
    await using beside = await Crew.open(stack.server.url, "beside", "services");
    const { ctx } = await direct.job();
    await assert.rejects(ctx.checkpoint(STATE), isOverQuota);
    await (await beside.job()).ctx.checkpoint(STATE);
    // Who runs the system is told of both, each of itself.
    const { stdout } = await cli(["doctor", "--server", stack.server.url]);
    assert.match(stdout, /checkpoints of tenant direct: 2, \d+ bytes, 133 % of its quota/);
    assert.match(stdout, /checkpoints of tenant beside: 1, \d+ bytes, 66 % of its quota/);
    const of = async (agent: Agent, more: JsonObject = {}) =>
      (await agent.read("interruptions", "checkpoint_use", more)).result;
    const used = { checkpoints: 1, used_bytes: 66_384, quota_bytes: TENANT_BYTES };
    assert.deepEqual(await of(beside.agent), used);
    assert.deepEqual(await of(beside.agent, { tenant: "direct", tenant_id: "direct" }), used);
  });

  for (const access of ["streams", "services"] as const) {
    test(`is its own: with access to ${access} a full one is refused, and what is interrupted stays`, async () => {
      await using full = await Crew.open(stack.server.url, `full-${access}`, access);
      await using other = await Crew.open(stack.server.url, `other-${access}`, access);
      const first = await full.job();
      const kept = await first.ctx.checkpoint(STATE);
      const interruption = await full.agent.interruptions.request(first.handle.taskId);
      await within(DEADLINE_MS, "it is saved", interruption.saved);
      const second = await full.job();
      await assert.rejects(second.ctx.checkpoint(STATE), (error) => {
        assert.ok(error instanceof HarmovelaError && isOverQuota(error), String(error));
        const { quota_bytes, used_bytes, needed_bytes } = error.details as JsonObject;
        assert.equal(quota_bytes, TENANT_BYTES);
        assert.ok(Number(used_bytes) > STATE.length && Number(needed_bytes) > STATE.length);
        assert.match(error.message, /end tasks that stay interrupted/);
        return true;
      });
      // What fits is stored, and nobody else notices.
      await second.ctx.checkpoint("small");
      await (await other.job()).ctx.checkpoint(STATE);
      assert.equal((await stored(`full-${access}`)).length, 2);
      assert.ok((await stored(`full-${access}`)).some((name) => name.endsWith(kept)));
      // Ended, nobody can go on from it: it makes room for what somebody can.
      await full.agent.interruptions.cancel(first.handle.taskId, { reason: "enough" });
      await eventually(DEADLINE_MS, "there is room", async () => {
        try {
          return await second.ctx.checkpoint(STATE);
        } catch (error) {
          if (isOverQuota(error)) return undefined;
          throw error;
        }
      });
      const left = await stored(`full-${access}`);
      assert.ok(
        left.every((name) => !name.endsWith(kept)),
        left.join(),
      );
    });
  }
});
