/** Validation beside a bare `JSON.parse` of the same bytes. */
import {
  checkEnvelope,
  checkPayload,
  checkType,
  checkVersion,
  parseJson,
} from "@harmovela/envelope";
import { taskEvent } from "./load.ts";

const RUNS = 100_000;

function nanoseconds(work: () => void): number {
  for (let run = 0; run < RUNS / 5; run += 1) work();
  const started = performance.now();
  for (let run = 0; run < RUNS; run += 1) work();
  return ((performance.now() - started) / RUNS) * 1e6;
}

export function envelopeCost(note: (name: string, value: number, unit?: string) => void): void {
  const bytes = Buffer.from(
    JSON.stringify(taskEvent("task.progress", "task_1", "agent:worker", { progress: 0.5 })),
  );
  let sink = 0;
  const bare = nanoseconds(() => {
    sink += (JSON.parse(bytes.toString()) as { id: string }).id.length;
  });
  const full = nanoseconds(() => {
    const json = parseJson(bytes);
    const checked = json.ok ? checkEnvelope(json.value) : json;
    if (!checked.ok) throw new Error(checked.error.message);
    for (const check of [checkVersion, checkType, checkPayload]) {
      const result = check(checked.value);
      if (!result.ok) throw new Error(result.error.message);
    }
    sink += 1;
  });
  if (sink === 0) throw new Error("nothing was measured");
  note("envelope_bytes", bytes.length);
  note("json_parse_ns", bare, "ns, bare JSON.parse");
  note("envelope_ns", full, "ns, all checks of one envelope");
  note("envelope_to_json_parse", full / bare, "checks / bare JSON.parse");
}
