/** What the record of decisions costs: the same envelopes judged with it and without, in turns. */
import { connectBus, intakeStreamSpec } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { openCoordinator, untilJudged } from "./judged.ts";
import { preload, progress, startedTasks } from "./load.ts";
import { median } from "./median.ts";

const TASKS = 1_000;

interface Cost {
  perSecond: number;
  /** Of this process, in which the service runs. */
  cpuMicros: number;
}

async function judge(events: number, audit: boolean): Promise<Cost> {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const prelude = startedTasks("t", TASKS);
  await bus.provision(intakeStreamSpec("tasks"));
  await preload(bus, prelude);
  const first = await openCoordinator(server.url, { audit });
  await untilJudged(first, prelude.length);
  await first.close();
  await preload(bus, progress("t", TASKS, events));
  const service = await openCoordinator(server.url, { audit });
  const started = performance.now();
  const cpu = process.cpuUsage();
  const from = service.host.status().intake;
  const total = prelude.length + events;
  await untilJudged(service, total);
  const perSecond = (total - from) / ((performance.now() - started) / 1_000);
  const { user, system } = process.cpuUsage(cpu);
  const cpuMicros = (user + system) / (total - from);
  await service.close();
  const { audited = 0 } = service.host.status().counters;
  if (audit && audited < events) throw new Error(`${audited} records of ${events} envelopes`);
  await bus.close();
  return { perSecond, cpuMicros };
}

export async function auditCost(
  note: (name: string, value: number, unit?: string) => void,
  rounds: number,
  events: number,
): Promise<void> {
  const without: Cost[] = [];
  const withIt: Cost[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Whoever goes first finds a colder machine.
    const order = round % 2 === 0 ? [false, true] : [true, false];
    for (const audit of order) {
      (audit ? withIt : without).push(await judge(events, audit));
    }
  }
  note("judged_per_s_audited", median(withIt.map(({ perSecond }) => perSecond)), "envelopes/s");
  const ratio = (of: (cost: Cost) => number): number =>
    median(withIt.map((cost, round) => of(cost) / of(without[round] ?? cost)));
  note(
    "audit_ratio",
    ratio(({ perSecond }) => perSecond),
    "judged/s with the audit / without",
  );
  note(
    "audit_cpu_ratio",
    ratio(({ cpuMicros }) => cpuMicros),
    "CPU an envelope with it / without",
  );
}
