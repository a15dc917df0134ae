import { MemoryServer, systemClock } from "@harmovela/bus";
import { busContract } from "./bus.contract.ts";

busContract("memory", async () => {
  const server = new MemoryServer({ clock: systemClock, now: () => Date.now() });
  return {
    connect: async (name) => server.connect({ name }),
    restart: async () => server.faults.restart(),
    purge: async (stream, subject) => server.faults.purge(stream, subject),
    trim: async (stream, firstSeq) => server.faults.trim(stream, firstSeq),
    displace: async (key) => server.faults.displace(key),
    [Symbol.asyncDispose]: async () => {
      for (const bus of server.clients()) await bus.close();
    },
  };
});
