import { connect } from "@harmovela/client";

const servers = process.env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222";
await using agent = await connect({ servers, tenant: "acme", agent: "agent:hotels" });
const worker = await agent.worker({ concurrency: 4, drainOn: process }, async (job, ctx) => {
  await ctx.progress({ progress: 0.5, message: `looking for ${job.description}` });
  return { hotel: "Rialto", nights: job.context.nights ?? 1 };
});
await worker.closed;
