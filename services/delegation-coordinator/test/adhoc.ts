import { readFileSync, readdirSync } from "node:fs";
import { given } from "@harmovela/testkit";
import { createTaskDecider, DEFAULT_TASK_SETTINGS } from "../src/index.ts";
for (const file of process.argv.slice(2)) {
  const w = given(createTaskDecider(DEFAULT_TASK_SETTINGS), {service: DEFAULT_TASK_SETTINGS.service});
  console.log("==", file.split("/").at(-1));
  for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const e = JSON.parse(line);
    const n = w.log.length;
    const o = w.judge(e);
    w.wait(e.x_probe_wait_ms ?? 1).settle();
    const d = Object.keys(o.decision)[0];
    console.log(" ", e.type, e.task_id, d, d === "reject" ? JSON.stringify((o.decision as any).reject) : "", w.log.slice(n+1).map(x => x.kind === "event" ? `${x.envelope.type} ${x.envelope.task_id} <-${x.envelope.causation_id}` : x.kind).join("; "));
  }
}
