/** What it costs honest traffic that each source is measured before anything is parsed. */
import { randomUUID } from "node:crypto";
import { connectBus, intakeStreamSpec, type JetStreamBus, systemClock } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Envelope } from "@harmovela/envelope";
import { type Host, openHost, type SourceLimits } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { pause, preload, progress, startedTasks } from "./load.ts";
import { median } from "./median.ts";

type Note = (name: string, value: number, unit?: string) => void;

/** So much that nobody reaches it: what is measured is the measuring. */
const LIMITS: SourceLimits = { messagesPerSecond: 1e9, bytesPerSecond: 1e12 };
const TASKS = 1_000;
/** Long enough that no other process takes over in between. */
const LEASE_TTL_MS = 3_000;

interface Judging {
  host: Host;
  close(): Promise<void>;
}

async function open(url: string, sourceLimits?: SourceLimits): Promise<Judging> {
  const connect = (name: string): Promise<JetStreamBus> => connectBus({ servers: url, name });
  const [writer, answerer] = [await connect("writer"), await connect("answerer")];
  const host = await openHost({
    ...createCoordinator(),
    version: "0.1.0",
    instance: randomUUID(),
    writer,
    answerer,
    clock: systemClock,
    logger: pino({ level: "silent" }),
    replicas: 1,
    replyPrefix: () => "_INBOX.",
    retentionMs: 30 * 86_400_000,
    leaseTtlMs: LEASE_TTL_MS,
    ...(sourceLimits === undefined ? {} : { sourceLimits }),
  });
  await host.untilLeading();
  return {
    host,
    close: async () => {
      await host.close();
      await writer.close();
      await answerer.close();
    },
  };
}

/** Rounds with limits and without take turns on one server; processor time, because others use the machine too. */
export async function sourceLimits(note: Note, rounds: number, events: number): Promise<void> {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  await bus.provision(intakeStreamSpec("tasks"));
  let stored = 0;
  const judged = async (load: readonly Envelope[], limits?: SourceLimits): Promise<number> => {
    await preload(bus, load);
    stored += load.length;
    const before = process.cpuUsage();
    const { host, close } = await open(server.url, limits);
    while (host.status().intake < stored || host.status().acked < host.status().position) {
      await pause(2);
    }
    const { user, system } = process.cpuUsage(before);
    await close();
    return (user + system) / load.length;
  };
  await judged(startedTasks("t", TASKS));
  const ratios: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const pair = { off: 0, on: 0 };
    // Whoever comes first in a round has the colder caches: they take turns in that too.
    const order = round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const);
    for (const which of order) {
      const load = progress("t", TASKS, events);
      pair[which] = await judged(load, which === "on" ? LIMITS : undefined);
    }
    ratios.push(pair.on / pair.off);
    costs.push(pair.off);
  }
  note("judge_cpu_us", median(costs), "µs of processor time for one envelope, without limits");
  note("source_limits_cost", median(ratios), "with limits / without, processor time");
  await bus.close();
}
