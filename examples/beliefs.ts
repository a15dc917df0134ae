import { connect } from "@harmovela/client";

const servers = process.env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222";
await using app = await connect({ servers, tenant: "acme", agent: "agent:airline-app" });
await using board = await connect({ servers, tenant: "acme", agent: "agent:airport-board" });
await using traveller = await connect({ servers, tenant: "acme", agent: "agent:traveller" });

// Two agents disagree about one fact; the traveller has not acted yet and defers.
const news = traveller.beliefs.watch("memory:gate");
await news.ready;
const gate = await app.beliefs.assert("memory:gate", "A12", { staleAfter: "PT30M" });
await board.beliefs.assert("memory:gate", "B3", { trust: "verified" });

for await (const { change } of news) {
  if (change === "contradicted") {
    const { useable, reasons } = await traveller.beliefs.useable("memory:gate");
    console.log(useable ? "walking" : `deferring: ${reasons[0]?.reason}`);
    await app.beliefs.revise(gate, "B3", { reason: "the gate has changed" });
  }
  if (change !== "revised" && change !== "resolved") continue;
  if ((await traveller.beliefs.useable("memory:gate")).useable) break;
}
console.log("walking to the gate that both name");
