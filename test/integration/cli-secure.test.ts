/** A stack in which nobody is who he says he is unless he proves it, with one command. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { authFromFile } from "@harmovela/bus";
import { enrol, strike } from "@harmovela/cli";
import { type Agent, connect } from "@harmovela/client";
import { freePort } from "@harmovela/testkit";
import { eventually } from "../chaos/deadline.ts";
import { CliProcess, cli } from "./cli-process.ts";

const WORKER = "agent:worker";
const DEADLINE_MS = 30_000;
const folder = mkdtempSync(join(tmpdir(), "harmovela-secure-"));
const store = join(folder, "store");
const keys = join(store, "keys");
let url: string;
let up: CliProcess;

async function start(): Promise<CliProcess> {
  const stack = new CliProcess(["up", "--secure", "--store", store, "--port", portOf(url)]);
  await stack.until(({ stdout }) => stdout.includes("Ctrl-C"));
  return stack;
}

const portOf = (server: string): string => new URL(server).port;

/** An agent of the SDK with the key of this file. */
const agentWith = (file: string, agent = WORKER): Promise<Agent> =>
  connect({
    servers: url,
    tenant: "default",
    agent,
    auth: authFromFile(join(keys, file)),
  });

/** As soon as the server has taken the key up. */
const comesIn = (file: string): Promise<Agent> =>
  eventually(DEADLINE_MS, `${file} comes in`, () => agentWith(file).catch(() => undefined));

before(async () => {
  url = `nats://127.0.0.1:${await freePort()}`;
  up = await start();
});

after(async () => {
  await up[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("one command makes keys that their owner alone can read, and says where they are", () => {
  assert.match(up.stdout, /ON: who connects needs a key/);
  assert.ok(up.stdout.includes("harmovela agent add"), up.stdout);
  assert.equal(statSync(keys).mode & 0o777, 0o700);
  const secrets = readdirSync(keys).filter((name) => name.endsWith(".nk"));
  // Two for each of four services, and the operator's.
  assert.equal(secrets.length, 9);
  for (const name of secrets) assert.equal(statSync(join(keys, name)).mode & 0o777, 0o600, name);
});

test("who has no key stays out and is told what is missing; an operator finds all well", async () => {
  const [out, examined] = await Promise.all([
    cli(["publish", "task.submitted", "--server", url]),
    cli(["doctor", "--server", url], { env: { HARMOVELA_KEY: join(keys, "operator.nk") } }),
  ]);
  assert.equal(out.code, 1);
  assert.match(out.stderr, /^harmovela: unauthorized: .*HARMOVELA_KEY.*\n$/);
  assert.equal(examined.code, 0, examined.stdout);
  assert.doesNotMatch(examined.stdout, /✗/);
  assert.match(examined.stdout, /HV_AUDIT/);
});

test("who is added comes in at once and under no other name; who is removed is out", async () => {
  const config = join(keys, "agents.conf");
  enrol(config, [
    { identity: { kind: "agent", tenant: "default", name: WORKER }, file: ["default", WORKER] },
  ]);
  const file = `default.${WORKER}.nk`;
  await using worker = await comesIn(file);
  const task = await worker.submit({ task_id: "task_kept", description: "stays" });
  assert.equal(task.id, "task_kept");
  const said = await agentWith(file, "agent:other")
    .then(async (other) => {
      await using agent = other;
      return await agent.publish({ type: "task.submitted", payload: {} });
    })
    .catch((error: unknown) => error);
  assert.equal((said as { code?: string }).code, "unauthorized");
  strike(config, WORKER, (one) => "tenant" in one && one.name === WORKER);
  await eventually(DEADLINE_MS, "the key is worth nothing any more", async () => {
    const again = await agentWith(file).catch(() => undefined);
    await again?.close();
    return again === undefined ? true : undefined;
  });
});

test("the keys are the same the next time, and so is what was accepted; a tail says what it waits for", async () => {
  const env = { HARMOVELA_KEY: join(keys, "operator.nk") };
  await using tail = new CliProcess(
    ["tail", "--task", "task_kept", "--from-start", "--server", url],
    { env },
  );
  await tail.until(({ stdout }) => stdout.includes("task_kept"));
  up.child.kill("SIGINT");
  assert.equal((await up.end()).code, 0, up.stderr);
  await tail.until(({ stderr }) => stderr.includes("the connection was lost"));
  up = await start();
  await tail.until(({ stderr }) => stderr.includes("connected again"));
  await using operator = await agentWith("operator.nk", "agent:cli");
  assert.notEqual((await operator.task("task_kept")).result, undefined);
});
