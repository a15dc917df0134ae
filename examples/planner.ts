import { connect } from "@harmovela/client";

const servers = process.env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222";
await using planner = await connect({ servers, tenant: "acme", agent: "agent:planner" });

const trip = await planner.submit({ description: "plan a trip", target: "agent:planner" });
await trip.start();
const hotel = await planner.delegate(
  "agent:hotels",
  { description: "a hotel in Venice", context: { nights: 3 } },
  { parent: trip.id, key: "hotel", deadline: new Date(Date.now() + 60_000) },
);
console.log("accepted by", (await hotel.accepted).by);
const booked = await hotel.result();
await trip.complete({ booked });
console.log("booked:", JSON.stringify(booked));
