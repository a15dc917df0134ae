/**
 * A worker in a process of its own, to be killed: each job counts its steps and keeps where it is. Argument:
 * its configuration as JSON. Prints every verdict that it was given.
 */
import { setTimeout as pass } from "node:timers/promises";
import { type Bus, connectBus, encodeToken } from "@harmovela/bus";
import { type Agent, type JobFunction, openAgent, type Verdict } from "@harmovela/client";
import { HarmovelaError } from "@harmovela/failure";
import { withOverrides } from "./overrides.ts";

/** When the process kills itself: at the n-th event of a type, before it leaves or when it is stored. */
export interface WorkerKill {
  point: "before" | "stored";
  /** `checkpoint`: bytes that go into the store. */
  at: string;
  n: number;
}

export interface WorkerConfig {
  url: string;
  tenant: string;
  agent: string;
  heartbeatMs: number;
  steps: number;
  stepMs: number;
  kill?: WorkerKill;
}

const config = JSON.parse(process.argv[2] ?? "") as WorkerConfig;
const { url, tenant, agent: name, heartbeatMs, steps, stepMs, kill } = config;
let count = 0;

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

/** Does it, unless the process is to end before or after it. */
async function unlessKilled<T>(what: string, act: () => Promise<T>): Promise<T> {
  const isIt = kill?.at === what && ++count === kill.n;
  if (isIt && kill?.point === "before") die();
  const done = await act();
  if (isIt) die();
  return done;
}

function tell({ id, cursor }: Verdict): void {
  process.stdout.write(`acked ${id} ${cursor}\n`);
}

const connected = await connectBus({
  servers: url,
  name: `${name} of ${tenant}`,
  inboxPrefix: `_INBOX.${encodeToken(tenant)}.${encodeToken(name)}`,
  waitOnFirstConnect: true,
  onChange: (change) => {
    if (change === "connected") agent?.onReconnected();
  },
});
const bus = withOverrides<Bus>(connected, {
  store: (...sent) => {
    const type = sent[0].split(".").slice(5).join(".");
    return unlessKilled(type, () => connected.store(...sent));
  },
  openBlobs: (options) => {
    const blobs = connected.openBlobs(options);
    return withOverrides(blobs, {
      put: (...put) => unlessKilled("checkpoint", () => blobs.put(...put)),
    });
  },
});
const agent: Agent | undefined = openAgent(bus, { agent: name, tenant });
const options = { concurrency: 6, heartbeatMs, patienceMs: 20_000 };
const work: JobFunction = async (_job, ctx) => {
  const from = (await ctx.resumedFrom?.json()) as { step: number } | undefined;
  for (let step = (from?.step ?? 0) + 1; step <= steps; step += 1) {
    if (ctx.signal.aborted) throw ctx.signal.reason;
    tell(await ctx.progress({ message: `step ${step}` }));
    await pass(stepMs);
    await ctx.checkpoint({ step });
  }
  return { steps };
};

/** Until somebody is there who opens its session. */
async function open(): Promise<void> {
  for (;;) {
    try {
      await agent?.worker(options, work);
      return;
    } catch (error) {
      if (!(error instanceof HarmovelaError) || error.retry === "never") throw error;
    }
  }
}

await open();
