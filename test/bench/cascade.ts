/** Cascades: how fast one runs, and what others notice of a large one. */
import { connectBus } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import type { RunningService } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import { openCoordinator, untilJudged } from "./judged.ts";
import { pause, preload, progress, startedTasks, taskEvent } from "./load.ts";
import { percentile, timedSender } from "./sender.ts";

type Note = (name: string, value: number, unit?: string) => void;

/** A root and `descendants` tasks below it, ten children each. */
function wideTree(root: string, descendants: number): Envelope[] {
  const name = (index: number) => (index === 0 ? root : `${root}_${index}`);
  return Array.from({ length: descendants + 1 }, (_, index) =>
    taskEvent(
      "task.submitted",
      name(index),
      "agent:planner",
      {},
      {
        ...(index === 0 ? {} : { parent_task_id: name(Math.floor((index - 1) / 10)) }),
      },
    ),
  );
}

async function settle(service: RunningService): Promise<void> {
  while (!service.host.status().isSettled) await pause(2);
}

const cancelOf = (root: string) =>
  taskEvent("task.cancelled", root, "agent:planner", { reason: "bench" });

export async function cascadeRate(note: Note, descendants: number): Promise<void> {
  await using server = await startNatsServer();
  const service = await openCoordinator(server.url);
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const tree = wideTree("root", descendants);
  await preload(bus, tree);
  await untilJudged(service, tree.length);
  const started = performance.now();
  await timedSender(bus).send(cancelOf("root"));
  await settle(service);
  const { derived = 0 } = service.host.status().counters;
  if (derived !== descendants + 1) throw new Error(`${derived} derived events`);
  note(
    "cascade_events_per_s",
    derived / ((performance.now() - started) / 1_000),
    `events/s, ${descendants} descendants`,
  );
  await service.close();
  await bus.close();
}

/** A second tenant's verdicts and timers while a large cascade and a flood of the intake go on. */
export async function underCascade(note: Note, descendants: number): Promise<void> {
  await using server = await startNatsServer();
  const service = await openCoordinator(server.url);
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const flooding = await connectBus({ servers: server.url, name: "bench flood" });
  const sender = timedSender(bus);
  const tree = wideTree("root", descendants);
  await preload(bus, tree);
  await untilJudged(service, tree.length);
  for (const envelope of startedTasks("other", 8)) await sender.send(envelope, "other");
  await preload(flooding, startedTasks("flood", 100));

  const lateness: number[] = [];
  bus.subscribe("hv.other.ev.tasks.*.*.task.timed_out", (message) => {
    const due = Number(message.header("Hv-At"));
    const { created_at } = JSON.parse(Buffer.from(message.data).toString()) as Envelope;
    lateness.push(Date.now() - Math.min(due, Date.parse(created_at)));
  });
  const submit = (index: number) =>
    sender.send(
      taskEvent("task.submitted", `timer_${index}`, "agent:planner", { timeout_ms: 200 }),
      "other",
    );
  await sender.send(cancelOf("root"));
  let isOver = false;
  const flood = (async () => {
    let round = 0;
    while (!isOver) {
      await preload(flooding, progress("flood", 100, 2_000));
      round += 1;
    }
    return round;
  })();
  const verdicts: number[] = [];
  let timers = 0;
  const load = progress("other", 8, 1_000_000);
  for (const envelope of load) {
    if (service.host.status().isSettled || verdicts.length >= 100_000) break;
    const { derived = 0 } = service.host.status().counters;
    if (derived > descendants) break;
    verdicts.push(await sender.send(envelope, "other"));
    if (verdicts.length % 20 === 0) {
      timers += 1;
      verdicts.push(await submit(timers));
    }
  }
  isOver = true;
  await flood;
  while (lateness.length < timers) await pause(10);
  note(
    "other_tenant_p50_ms",
    percentile(verdicts, 0.5),
    "ms to verdict during the cascade and flood",
  );
  note(
    "other_tenant_p99_ms",
    percentile(verdicts, 0.99),
    "ms to verdict during the cascade and flood",
  );
  note(
    "timer_lateness_p50_ms",
    percentile(lateness, 0.5),
    "ms after the due time, as an observer sees it",
  );
  note(
    "timer_lateness_p99_ms",
    percentile(lateness, 0.99),
    "ms after the due time, as an observer sees it",
  );
  await service.close();
  await Promise.all([bus.close(), flooding.close()]);
}
