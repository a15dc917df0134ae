import { connect } from "@harmovela/client";

const servers = process.env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222";
await using planner = await connect({ servers, tenant: "acme", agent: "agent:planner" });
await using worker = await connect({ servers, tenant: "acme", agent: "agent:worker" });

const trip = await planner.submit({ description: "plan a trip" });
await trip.start();
const hotel = await trip.child({ target: "agent:worker", description: "book a hotel" });

for await (const job of worker.tasks()) {
  await job.start();
  await job.progress({ progress: 0.5, message: "comparing prices" });
  await trip.complete("too early").catch((refusal) => console.log("refused:", refusal.code));
  await job.complete({ hotel: "Rialto" });
  break;
}
const { state } = await hotel.settled();
await trip.complete({ hotel: state });
console.log("settled:", (await trip.settled()).state);
