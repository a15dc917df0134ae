/**
 * What judging costs beside a bare relay in the same run (architecture, P7). Absolute figures depend
 * on the machine; the ratios are what counts.
 *
 *   npm run bench                     all figures
 *   npm run bench -- --quick --json   the short form, one JSON object
 *   npm run bench:million             a million live claims in memory
 */
import { parseArgs } from "node:util";
import { connectBus, intakeStreamSpec, logStreamSpec } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { auditCost } from "./audit.ts";
import { beliefFold } from "./belief-fold.ts";
import { claimRate, expiryLateness, markRate } from "./beliefs.ts";
import { cascadeRate, underCascade } from "./cascade.ts";
import { delegations } from "./delegation.ts";
import { envelopeCost } from "./envelope-cost.ts";
import { INTAKE, openCoordinator, untilJudged } from "./judged.ts";
import { latency } from "./latency.ts";
import { pause, preload, progress, startedTasks } from "./load.ts";
import { median } from "./median.ts";
import { provenance } from "./provenance.ts";
import { bareRelay, productRelay } from "./relay.ts";
import { security } from "./security.ts";
import { sourceLimits } from "./source-limits.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const figures: Record<string, number | string> = {};
const note = (name: string, value: number | string, unit = ""): void => {
  figures[name] = typeof value === "number" ? Number(value.toPrecision(4)) : value;
  if (!values.json) process.stdout.write(`${name.padEnd(40)} ${figures[name]} ${unit}\n`);
};
/** One round on a fresh server: bare client, product relay, judging; the same envelopes for each. */
async function round(events: number, tasks: number) {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const prelude = startedTasks("t", tasks);
  const load = [...prelude, ...progress("t", tasks, events)];
  for (const domain of ["beliefs", "provenance", "tasks"] as const) {
    await bus.provision(intakeStreamSpec(domain));
    await bus.provision(logStreamSpec(domain));
    if (domain !== "tasks") await preload(bus, load, domain);
  }
  const bare = await bareRelay(bus, "beliefs", load.length);
  const relay = await productRelay(bus, "provenance", load.length);
  // The prelude is judged before the clock starts: what is measured is the steady state.
  await preload(bus, prelude);
  const first = await openCoordinator(server.url);
  await untilJudged(first, prelude.length);
  await first.close();
  await preload(bus, load.slice(prelude.length));
  const service = await openCoordinator(server.url);
  const started = performance.now();
  const from = service.host.status().intake;
  await untilJudged(service, load.length);
  const judged = (load.length - from) / ((performance.now() - started) / 1_000);
  const { accepted = 0 } = service.host.status().counters;
  if (accepted < load.length - from) throw new Error(`${load.length - from - accepted} refused`);
  await service.close();
  await bus.close();
  return { bare, relay, judged };
}

async function throughput(rounds: number, events: number): Promise<void> {
  const results: Awaited<ReturnType<typeof round>>[] = [];
  for (let index = 0; index < rounds; index += 1) results.push(await round(events, 1_000));
  note("bare_relay_per_s", median(results.map(({ bare }) => bare)), "messages/s, bare client");
  note(
    "relay_per_s",
    median(results.map(({ relay }) => relay)),
    "messages/s, own reader and appender",
  );
  note(
    "relay_ratio",
    median(results.map(({ bare, relay }) => relay / bare)),
    "own relay / bare client",
  );
  note("judged_per_s", median(results.map(({ judged }) => judged)), "envelopes/s");
  note("ratio", median(results.map(({ relay, judged }) => judged / relay)), "judged / own relay");
  note(
    "ratio_to_bare_client",
    median(results.map(({ bare, judged }) => judged / bare)),
    "judged / bare client",
  );
}

/** Cost with many live tasks beside few, in one run; and how fast a restart folds all of it. */
async function size(live: number, events: number): Promise<void> {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  await bus.provision(intakeStreamSpec("tasks"));
  let stored = 0;
  const rate = async (tasks: number, prefix: string): Promise<number> => {
    const prelude = startedTasks(prefix, tasks);
    await preload(bus, prelude);
    stored += prelude.length;
    const before = await openCoordinator(server.url);
    await untilJudged(before, stored);
    await before.close();
    await preload(bus, progress(prefix, tasks, events));
    stored += events;
    const service = await openCoordinator(server.url);
    const started = performance.now();
    const from = service.host.status().intake;
    await untilJudged(service, stored);
    const perSecond = (stored - from) / ((performance.now() - started) / 1_000);
    await service.close();
    return perSecond;
  };
  const few = await rate(1_000, "few");
  const many = await rate(live, "many");
  note("judged_per_s_1k_live", few, "envelopes/s");
  note(`judged_per_s_${live / 1_000}k_live`, many, "envelopes/s");
  note("cost_many_to_few", few / many, "1 is flat");
  const { lastSeq = 0 } = (await bus.streamState("HV_LOG_TASKS")) ?? {};
  const restarted = async (): Promise<number> => {
    const started = performance.now();
    const service = await openCoordinator(server.url);
    const ms = performance.now() - started;
    await service.close();
    return ms;
  };
  note("restart_from_snapshot_ms", await restarted(), `ms, with ${lastSeq} entries before`);
  const blobs = bus.openBlobs({ replicas: 1 });
  const [snapshot] = (await blobs.list()).slice(-1);
  note("snapshot_bytes", snapshot?.bytes ?? 0, "bytes");
  for (const { name } of await blobs.list()) await blobs.remove(name);
  note(
    "fold_per_s",
    lastSeq / ((await restarted()) / 1_000),
    "entries/s on restart without snapshot",
  );
  note("snapshot_pause_ms", await snapshotPause(server.url), "ms in which nothing is judged");
  await bus.close();
}

/** How long the service stands still while its state is written down. */
async function snapshotPause(url: string): Promise<number> {
  const service = await openCoordinator(url, { snapshotEntries: 1 });
  for (;;) {
    const { snapshot } = service.host.status();
    if (snapshot !== undefined) {
      await service.close();
      return snapshot.pauseMs;
    }
    await pause(10);
  }
}

note("stream", INTAKE);
const isQuick = values.quick;
envelopeCost(note);
await throughput(isQuick ? 1 : 5, isQuick ? 60_000 : 150_000);
await auditCost(note, isQuick ? 1 : 5, isQuick ? 60_000 : 150_000);
await sourceLimits(note, isQuick ? 2 : 10, isQuick ? 30_000 : 60_000);
await latency(note, isQuick ? 1_000 : 5_000);
await cascadeRate(note, isQuick ? 2_000 : 10_000);
await delegations(note, 1_000);
await provenance(note, isQuick ? 5_000 : 50_000);
await security(note, isQuick ? 3_000 : 15_000);
await claimRate(note, isQuick ? 1 : 3, isQuick ? 30_000 : 100_000);
await markRate(note, isQuick ? 5_000 : 100_000);
await expiryLateness(note, isQuick ? 2_000 : 10_000);
beliefFold(note, isQuick ? 20_000 : 100_000);
if (!isQuick) {
  await size(100_000, 60_000);
  await underCascade(note, 100_000);
}
if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`);
