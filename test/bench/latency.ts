/** From publish to verdict, one at a time and with 32 under way. */
import { connectBus } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { openCoordinator } from "./judged.ts";
import { progress, startedTasks } from "./load.ts";
import { percentile, timedSender } from "./sender.ts";

export async function latency(
  note: (name: string, value: number, unit?: string) => void,
  events: number,
): Promise<void> {
  await using server = await startNatsServer();
  const service = await openCoordinator(server.url);
  const bus = await connectBus({ servers: server.url, name: "bench sender" });
  const sender = timedSender(bus);
  for (const envelope of startedTasks("l", 32)) await sender.send(envelope);
  const single: number[] = [];
  for (const envelope of progress("l", 32, events)) single.push(await sender.send(envelope));
  note("verdict_p50_ms", percentile(single, 0.5), "ms, one at a time");
  note("verdict_p99_ms", percentile(single, 0.99), "ms, one at a time");
  const load = progress("l", 32, events * 4);
  const many: number[] = [];
  const started = performance.now();
  await Promise.all(
    Array.from({ length: 32 }, async (_, lane) => {
      for (let at = lane; at < load.length; at += 32) {
        const envelope = load[at];
        if (envelope !== undefined) many.push(await sender.send(envelope));
      }
    }),
  );
  note(
    "verdict_32_per_s",
    load.length / ((performance.now() - started) / 1_000),
    "verdicts/s, 32 under way",
  );
  note("verdict_32_p50_ms", percentile(many, 0.5), "ms, 32 under way");
  note("verdict_32_p99_ms", percentile(many, 0.99), "ms, 32 under way");
  await service.close();
  await bus.close();
}
