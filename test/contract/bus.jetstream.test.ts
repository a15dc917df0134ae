import { connectBus, type JetStreamBus } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { busContract } from "./bus.contract.ts";
import { within } from "./support.ts";

busContract("JetStream", async () => {
  const server = await startNatsServer();
  const open: JetStreamBus[] = [];
  const reconnections = new Map<JetStreamBus, () => void>();
  const admin = await connectBus({ servers: server.url, name: "admin" });
  const api = async (verb: string, body: object): Promise<void> => {
    const answer = await admin.nats.request(`$JS.API.${verb}`, JSON.stringify(body));
    const { error } = answer.json<{ error?: { description: string } }>();
    if (error) throw new Error(error.description);
  };
  return {
    connect: async (name) => {
      const bus: JetStreamBus = await connectBus({
        servers: server.url,
        name,
        onChange: (change) => {
          if (change === "connected") reconnections.get(bus)?.();
        },
      });
      open.push(bus);
      return bus;
    },
    restart: async () => {
      const back = open
        .filter((bus) => bus.isConnected)
        .map((bus) => new Promise<void>((resolve) => reconnections.set(bus, resolve)));
      await server.kill();
      await server.restart();
      await within("all clients are back", Promise.all(back));
    },
    purge: (stream, subject) => api(`STREAM.PURGE.${stream}`, { filter: subject }),
    trim: (stream, seq) => api(`STREAM.PURGE.${stream}`, { seq }),
    displace: (key) => api("STREAM.PURGE.KV_HV_LEASES", { filter: `$KV.HV_LEASES.${key}` }),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([admin, ...open].map((bus) => bus.close()));
      await server[Symbol.asyncDispose]();
    },
  };
});
