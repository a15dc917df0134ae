/**
 * A worker in a process of its own that does its job step by step. Each step makes a file that there may be
 * only once, then a checkpoint. A job that begins stops at the step `holdAt` and waits there to be stopped.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../src/index.ts";

const {
  HARMOVELA_SERVERS: servers = "",
  WORKER_NAME: name = "",
  WORKER_OPTIONS = "{}",
} = process.env;

await using agent = await connect({ servers, agent: name });
const worker = await agent.worker(
  { concurrency: 1, ...JSON.parse(WORKER_OPTIONS), drainOn: process },
  async ({ context, taskId }, { signal, resumedFrom, checkpoint, progress }) => {
    const { steps, folder, holdAt } = context as { steps: number; folder: string; holdAt: number };
    const from = Number((await resumedFrom?.json()) ?? 0);
    console.log(`${resumedFrom ? "resumes" : "begins"} ${taskId} at ${from}`);
    for (let step = from; step < steps; step++) {
      if (step === holdAt && resumedFrom === undefined) {
        await progress({ message: "holding" });
        if (!signal.aborted) await once(signal, "abort");
      }
      signal.throwIfAborted();
      writeFileSync(join(folder, `step-${step}`), `${process.pid}`, { flag: "wx" });
      await checkpoint(step + 1);
    }
    return { steps, from };
  },
);
console.log(`ready ${worker.sessionId}`);
await worker.closed;
console.log("closed");
