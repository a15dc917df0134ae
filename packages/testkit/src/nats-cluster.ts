/** Real nats-servers as one cluster, so that streams have copies: each killed and restarted by itself. */
import { setTimeout as pass } from "node:timers/promises";
import { connectBus, type JetStreamBus } from "@harmovela/bus";
import { freePort, type NatsServer, startNatsServer } from "./nats-server.ts";

export interface NatsCluster {
  /** By name, `n1` and so on, as the server names itself in `cluster.leader` of a stream. */
  readonly servers: ReadonlyMap<string, NatsServer>;
  readonly urls: string[];
  readonly version: string;
  /** Stops all and removes what they made. */
  [Symbol.asyncDispose](): Promise<void>;
}

const CLUSTER = "testkit";
const READY_MS_MAX = 30_000;
const LOOK_MS = 100;
const ASK_MS = 2_000;
const TRIAL = "TESTKIT_TRIAL";

/** Starts so many servers on 127.0.0.1; resolves when JetStream has a leader and all of them. */
export async function startNatsCluster(size = 3): Promise<NatsCluster> {
  const names = Array.from({ length: size }, (_, place) => `n${place + 1}`);
  const ports = new Map<string, number>();
  for (const name of names) ports.set(name, await freePort());
  const routes = [...ports.values()].map((port) => `"nats-route://127.0.0.1:${port}"`).join(", ");
  const servers = new Map<string, NatsServer>();
  const stopAll = async (): Promise<void> => {
    await Promise.all([...servers.values()].map((server) => server[Symbol.asyncDispose]()));
  };
  try {
    await Promise.all(
      [...ports].map(async ([name, port]) => {
        const cluster = `cluster { name: ${CLUSTER}, listen: "127.0.0.1:${port}", routes: [${routes}] }`;
        const config = `server_name: ${name}\n${cluster}`;
        servers.set(name, await startNatsServer({ config }));
      }),
    );
    await formed(servers);
  } catch (error) {
    await stopAll();
    throw error;
  }
  return {
    servers,
    urls: [...servers.values()].map(({ url }) => url),
    version: servers.get("n1")?.version ?? "",
    [Symbol.asyncDispose]: stopAll,
  };
}

/** A stream with as many copies as there are servers can be made when each of them takes part. */
async function formed(servers: ReadonlyMap<string, NatsServer>): Promise<void> {
  const urls = [...servers.values()].map(({ url }) => url);
  await using bus = await connectBus({ servers: urls, name: "testkit" });
  const until = performance.now() + READY_MS_MAX;
  const stream = { name: TRIAL, subjects: [TRIAL], storage: "memory", num_replicas: urls.length };
  for (;;) {
    const why = await refusal(bus, `STREAM.CREATE.${TRIAL}`, stream);
    if (why === undefined) break;
    if (performance.now() > until) throw new Error(`the cluster is not ready in time: ${why}`);
    await pass(LOOK_MS);
  }
  await refusal(bus, `STREAM.DELETE.${TRIAL}`, {});
}

/** Why the server did not do it; undefined when it did. */
async function refusal(bus: JetStreamBus, verb: string, body: object): Promise<string | undefined> {
  try {
    const answer = await bus.nats.request(`$JS.API.${verb}`, JSON.stringify(body), {
      timeout: ASK_MS,
    });
    return answer.json<{ error?: { description: string } }>().error?.description;
  } catch (error) {
    return String(error);
  }
}
