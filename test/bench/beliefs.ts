/** The belief tracker: claims beside the relay, marks of one retraction, and how late expiries are. */
import { connectBus, intakeStreamSpec, logStream, logStreamSpec } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { openTracker, untilJudged } from "./judged.ts";
import { claimEvent, pause, preload, TENANT } from "./load.ts";
import { median } from "./median.ts";
import { productRelay } from "./relay.ts";
import { percentile } from "./sender.ts";
import { startServiceProcess } from "./service-process.ts";

type Note = (name: string, value: number, unit?: string) => void;

const PAST = "2025-11-30T10:00:00.000Z";
const FAR = "2099-11-30T10:00:00.000Z";
const claims = (count: number): Envelope[] =>
  Array.from({ length: count }, (_, index) =>
    claimEvent(`f_${index}`, "agent:worker", { valid_until: FAR }),
  );

export async function claimRate(note: Note, rounds: number, count: number): Promise<void> {
  const results: Awaited<ReturnType<typeof claimRound>>[] = [];
  for (let round = 0; round < rounds; round += 1) results.push(await claimRound(count));
  note("claims_per_s", median(results.map(({ judged }) => judged)), "claims/s, with windows");
  const ratio = median(results.map(({ judged, relay }) => judged / relay));
  note("claims_ratio", ratio, "claims / own relay in the same run");
}

/** Claims with windows, each on a subject of its own, judged beside the relay on the same server. */
async function claimRound(count: number): Promise<{ judged: number; relay: number }> {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const load = claims(count);
  for (const domain of ["beliefs", "provenance"] as const) {
    await bus.provision(intakeStreamSpec(domain));
    await bus.provision(logStreamSpec(domain));
    await preload(bus, load, domain);
  }
  const relay = await productRelay(bus, "provenance", load.length);
  const service = await openTracker(server.url);
  const started = performance.now();
  const from = service.host.status().intake;
  await untilJudged(service, load.length);
  const judged = (load.length - from) / ((performance.now() - started) / 1_000);
  const { accepted = 0 } = service.host.status().counters;
  if (accepted < load.length - from) throw new Error(`${load.length - accepted} refused`);
  await service.close();
  await bus.close();
  return { judged, relay };
}

/** From the retraction's store to its own entry, which follows the last mark. */
export async function markRate(note: Note, dependents: number): Promise<void> {
  await using server = await startNatsServer();
  const service = await openTracker(server.url);
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const base = claimEvent("base", "agent:worker");
  const drawn = Array.from({ length: dependents }, (_, index) =>
    claimEvent(`d_${index}`, "agent:worker", { causation_id: base.id }),
  );
  await preload(bus, [base, ...drawn], "beliefs");
  await untilJudged(service, drawn.length + 1);
  const retraction = {
    ...claimEvent("base", "agent:worker"),
    type: "memory.fact.invalidated",
    belief_status: "retracted",
    payload: { fact_id: "base" },
  } as const;
  const started = performance.now();
  await preload(bus, [retraction], "beliefs");
  await untilJudged(service, drawn.length + 2);
  while (!service.host.status().isSettled) await pause(2);
  const seconds = (performance.now() - started) / 1_000;
  const { derived = 0 } = service.host.status().counters;
  if (derived !== dependents + 1) throw new Error(`${derived} derived events`);
  note("marks_s", seconds, `s to mark the ${dependents} dependents of one retraction`);
  note("marks_per_s", dependents / seconds, "marks/s");
  await service.close();
  await bus.close();
}

/** All claims must be judged before the first of them ends: a thousand a second is slow. */
const leadMs = (windows: number): number => 5_000 + windows;

/** So many windows end within one second; the tracker is a process of its own, the observer this one. */
export async function expiryLateness(note: Note, windows: number): Promise<void> {
  await using server = await startNatsServer();
  await using _service = await startServiceProcess(server.url, "beliefs");
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const lateness: number[] = [];
  const subject = `hv.${TENANT}.ev.beliefs.*.*.freshness.expired`;
  bus.subscribe(subject, ({ data }) => {
    const { valid_until: end = "" } = JSON.parse(Buffer.from(data).toString()) as Envelope;
    lateness.push(Date.now() - Date.parse(end));
  });
  const first = Date.now() + leadMs(windows);
  const load = Array.from({ length: windows }, (_, index) => {
    const end = first + Math.floor((1_000 * index) / windows);
    const valid_until = new Date(end).toISOString();
    return claimEvent(`f_${index}`, "agent:worker", {
      valid_until,
      created_at: PAST,
    });
  });
  await preload(bus, load, "beliefs");
  while (((await bus.streamState(logStream("beliefs")))?.lastSeq ?? 0) < windows) await pause(10);
  if (Date.now() > first) throw new Error("the claims were judged too late");
  while (lateness.length < windows) await pause(10);
  for (const [name, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
    ["max", 1],
  ] as const) {
    const unit = `ms after the end, ${windows} ends in one second, as an observer sees it`;
    note(`expiry_lateness_${name}_ms`, percentile(lateness, share), unit);
  }
  await bus.close();
}
