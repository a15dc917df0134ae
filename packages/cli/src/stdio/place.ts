/** Where stdio works: a stack of its own or one that runs, and from which position on it looks. */

import { type Bus, connectBus, DOMAINS, logStream } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { CommandFailure } from "../command-failure.ts";
import { toServers } from "../options.ts";
import { ownKey } from "../own-key.ts";
import { openStack, type Stack } from "../stack/stack.ts";

export interface Place {
  readonly bus: Bus;
  /** The end of each log before the services of this place wrote anything. */
  readonly from: ReadonlyMap<Domain, number>;
  /** Rejects when the stack is gone; never resolves. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

export interface PlaceOptions {
  /** A stack that runs; else one is started. */
  server?: string;
  /** Of the own stack; default a temporary one. */
  store?: string;
}

/** Opens it; throws and leaves nothing behind when it cannot. */
export async function openPlace({ server, store }: PlaceOptions): Promise<Place> {
  if (server !== undefined) return openRunning(server);
  let from = new Map<Domain, number>();
  const stack = await openStack({
    // Whoever writes the lines speaks for everybody in them (spec 9.6).
    processIdentity: true,
    ...(store === undefined ? {} : { storeDir: store }),
    beforeServices: async (url) => {
      const bus = await connect(url);
      const ends = await logEnds(bus);
      from = new Map(DOMAINS.map((domain) => [domain, ends.get(domain) ?? 0]));
      await bus.close();
    },
  });
  try {
    return toPlace(await connect(stack.url), from, stack);
  } catch (error) {
    await stack.close();
    throw error;
  }
}

async function openRunning(server: string): Promise<Place> {
  const bus = await connect(server);
  const from = await logEnds(bus);
  if (from.size > 0) return toPlace(bus, from, undefined);
  await bus.close();
  throw new CommandFailure("no service has ever run on that server: `harmovela up` runs them");
}

function connect(server: string): Promise<Bus> {
  return connectBus({ servers: toServers(server), name: "harmovela stdio", ...ownKey() });
}

function toPlace(bus: Bus, from: ReadonlyMap<Domain, number>, stack: Stack | undefined): Place {
  return {
    bus,
    from,
    failed: stack?.failed ?? new Promise<never>(() => {}),
    close: async () => {
      await bus.close();
      await stack?.close();
    },
  };
}

/** The end of every log that there is. */
async function logEnds(bus: Bus): Promise<Map<Domain, number>> {
  const ends = new Map<Domain, number>();
  for (const domain of DOMAINS) {
    const state = await bus.streamState(logStream(domain));
    if (state !== undefined) ends.set(domain, state.lastSeq);
  }
  return ends;
}
