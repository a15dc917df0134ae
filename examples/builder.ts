import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@harmovela/client";

const { HARMOVELA_SERVERS: servers = "nats://127.0.0.1:4222", FOLDER: folder = "." } = process.env;
await using agent = await connect({ servers, tenant: "acme", agent: "agent:builder" });
const worker = await agent.worker({ concurrency: 1, drainOn: process }, async (job, ctx) => {
  const floors = Number(job.context.floors);
  // Undefined when the job begins; else what was saved last, here or on another machine.
  for (let floor = Number((await ctx.resumedFrom?.json()) ?? 0); floor < floors; floor++) {
    // Aborts when the job is to stop. What is thrown then is no failure: the newest checkpoint is saved.
    ctx.signal.throwIfAborted();
    // "wx" refuses to make a file twice: whatever is done again shows.
    writeFileSync(join(folder, `floor-${floor}`), `built by process ${process.pid}`, {
      flag: "wx",
    });
    await ctx.checkpoint(floor + 1);
    await ctx.progress({ progress: (floor + 1) / floors });
  }
  return { floors };
});
await worker.closed;
