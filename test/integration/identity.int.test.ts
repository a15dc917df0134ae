/** Accounts as the command line writes them: what they let through, and who comes and goes at a reload. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { authFromFile } from "@harmovela/bus";
import { enrol, strike } from "@harmovela/cli";
import { connect } from "@harmovela/client";
import { eventually, within } from "../chaos/deadline.ts";
import { envelope } from "../chaos/sender.ts";
import { Stage } from "./attack-stage.ts";
import { CliProcess } from "./cli-process.ts";

const WORKER = "agent:worker";
const LEAVER = "agent:leaver";
const ODD = "agent:a.b *>/é";
const DEADLINE_MS = 30_000;

describe("a server with accounts", () => {
  let stage: Stage;
  before(async () => {
    stage = await Stage.open([
      ["acme", WORKER],
      ["acme", LEAVER],
      ["acme", ODD],
    ]);
  });
  after(() => stage[Symbol.asyncDispose]());

  async function reload(times: number): Promise<void> {
    process.kill(stage.server.pid ?? assert.fail(), "SIGHUP");
    await eventually(DEADLINE_MS, `reload ${times}`, () => {
      const told = stage.server.log.split("Reloaded server configuration").length - 1;
      return told >= times ? true : undefined;
    });
  }

  test("services need nothing that is not in their lists, over snapshots and a new start", async () => {
    const worker = await stage.agent("acme", WORKER);
    for (let n = 1; n <= 10; n++) await worker.honest(`task_${n}`);
    const claim = { key: "weather", value: "rain", valid_from: "2026-11-30T10:00:00Z" };
    await worker.say(envelope(WORKER, "belief.asserted", "task_1", { payload: claim }));
    await stage.stopServices();
    const stores = ["OBJ_HV_SNAPSHOTS", "OBJ_HV_CHECKPOINTS"];
    const [snapshots, checkpoints] = await Promise.all(
      stores.map((s) => stage.operator.streamState(s)),
    );
    assert.ok((snapshots?.messages ?? 0) > 0, "a snapshot was written");
    assert.ok(checkpoints !== undefined, "the manager made its store");
    await stage.startServices();
    const answer = await worker.ask("tasks", "task", { task_id: "task_7" });
    assert.ok("result" in answer, JSON.stringify(answer));
    for (const { host } of stage.services) assert.deepEqual(host.status().alarms, []);
    assert.doesNotMatch(stage.server.log, /Violation/);
  });

  test("a name of wildcards, dots and slashes is an agent like any other", async () => {
    const odd = await stage.agent("acme", ODD);
    await odd.honest("task_odd");
    const overheard = `hv.acme.in.tasks.${WORKER}.task.submitted`;
    odd.nats.publish(overheard, "{}");
    await odd.forbidden("publish", overheard);
  });

  test("observers hear entries, services hear heartbeats, and neither hears other tenants", async () => {
    const worker = await stage.agent("acme", WORKER);
    const subject = `hv.acme.live.${WORKER}.session.heartbeat`;
    const entry = first(worker.nats.subscribe("hv.acme.ev.>", { max: 1 }));
    const heard = new Promise<string>((resolve) => {
      stage.operator.subscribe("hv.*.live.>", (message) => resolve(message.subject));
    });
    await Promise.all([worker.nats.flush(), stage.operator.flush()]);
    worker.nats.publish(subject, "{}");
    assert.equal(await within(DEADLINE_MS, "the heartbeat", heard), subject);
    await worker.say(envelope(WORKER, "task.submitted", "task_seen"));
    const seen = await within(DEADLINE_MS, "the entry", entry);
    assert.equal(seen, `hv.acme.ev.tasks.${WORKER}.-.task.submitted`);
  });

  test("an agent of the SDK says, asks and is told, with the file that the command wrote", async () => {
    const agent = await connect({
      servers: stage.server.url,
      tenant: "acme",
      agent: WORKER,
      auth: authFromFile(join(stage.folder, `acme.${WORKER}.nk`)),
    });
    try {
      const sent = envelope(WORKER, "task.submitted", "task_sdk");
      const verdict = await agent.publish({ type: sent.type, task_id: "task_sdk", payload: {} });
      assert.equal("stored" in verdict, false);
      assert.equal((await agent.task("task_sdk")).result !== undefined, true);
      const story = agent.subscribe({ task_id: "task_sdk", domains: ["tasks"], from: "start" });
      const { value } = await story.next();
      assert.equal(value?.envelope.id, (verdict as { id?: string }).id);
    } finally {
      await agent.close();
    }
  });

  test("who is removed is cut off at the reload and stays out; who is added comes in", async () => {
    const leaver = await stage.agent("acme", LEAVER);
    await leaver.honest("task_last");
    const gone = leaver.nats.closed();
    strike(stage.config, LEAVER, (one) => "tenant" in one && one.name === LEAVER);
    enrol(stage.config, [
      { identity: { kind: "agent", tenant: "gamma", name: WORKER }, file: ["gamma", WORKER] },
    ]);
    const live = `hv.gamma.live.${WORKER}.session.heartbeat`;
    const heard = new Promise<string>((resolve) => {
      stage.operator.subscribe("hv.*.live.>", (message) => resolve(message.subject));
    });
    await stage.operator.flush();
    // An account that comes with a reload has its imports from the next reload on (docs/operating.md).
    for (const times of [1, 2]) await reload(times);
    await within(DEADLINE_MS, "the connection is closed", gone);
    await assert.rejects(stage.agent("acme", LEAVER), /[Aa]uthorization/);
    const added = await eventually(DEADLINE_MS, "the new tenant comes in", () =>
      stage.agent("gamma", WORKER).catch(() => undefined),
    );
    await added.honest("task_first");
    added.nats.publish(live, "{}");
    assert.equal(await within(DEADLINE_MS, "the heartbeat of the new tenant", heard), live);
    const worker = await stage.agent("acme", WORKER);
    await worker.honest("task_as_ever");
  });

  test("an operator's commands look into everything, an agent's ask", async () => {
    const worker = await stage.agent("acme", WORKER);
    await worker.honest("task_asked");
    const server = ["--server", stage.server.url];
    const as = async (key: string, ...words: string[]) => {
      const command = new CliProcess([...words, ...server], {
        env: { HARMOVELA_KEY: join(stage.folder, key) },
      });
      return command.ended;
    };
    const checked = await as("operator.nk", "check");
    assert.equal(checked.code, 0, checked.stderr);
    const examined = await as("operator.nk", "doctor", "--tenant", "acme");
    assert.match(examined.stdout, /✓ delegation-coordinator/);
    const told = ["why", "task_asked", "--tenant", "acme", "--as", WORKER];
    assert.equal((await as(`acme.${WORKER}.nk`, ...told)).code, 0);
    const tail = ["tail", "--tenant", "acme", "--type", "task.*", "--from-start", "--json"];
    const wanted = ["--task", "task_asked"];
    for (const more of [
      { key: `acme.${WORKER}.nk`, words: ["--as", WORKER] },
      { key: "operator.nk", words: ["--streams"] },
    ]) {
      await using follower = new CliProcess([...tail, ...wanted, ...more.words, ...server], {
        env: { HARMOVELA_KEY: join(stage.folder, more.key) },
      });
      await follower.until(({ events }) => events.some(({ type }) => type === "task.completed"));
      assert.equal(follower.events.length, 4);
    }
    const nobody = await as(`acme.${WORKER}.nk`, "check");
    assert.match(nobody.stderr, /unauthorized/);
  });
});

async function first(messages: AsyncIterable<{ subject: string }>): Promise<string> {
  for await (const { subject } of messages) return subject;
  throw new Error("the subscription has ended");
}
