import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@harmovela/client";

const servers = process.env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222";
const folder = mkdtempSync(join(tmpdir(), "tower-"));
const builder = fileURLToPath(new URL("builder.ts", import.meta.url));
const startBuilder = () =>
  spawn(process.execPath, [...process.execArgv, builder], {
    env: { ...process.env, HARMOVELA_SERVERS: servers, FOLDER: folder },
    stdio: "inherit",
  });

await using planner = await connect({ servers, tenant: "acme", agent: "agent:planner" });
const first = startBuilder();
const town = await planner.submit({ description: "a town", target: "agent:planner" });
await town.start();
const tower = await planner.delegate(
  "agent:builder",
  { description: "a tower", context: { floors: 300 } },
  { parent: town.id },
);
for await (const { envelope } of tower.events()) if (envelope.type === "task.progress") break;

const interruption = await planner.interruptions.request(tower.taskId, { reason: "moving" });
const { checkpointId, by } = await interruption.saved;
console.log(`saved by ${by} after ${readdirSync(folder).length} floors`);
first.kill("SIGKILL");

const second = startBuilder();
await planner.interruptions.resume(tower.taskId, checkpointId);
console.log("finished:", JSON.stringify(await tower.result()));
await town.complete();

const floors = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
console.log(`${floors.length} floors, each built once, by ${new Set(floors).size} processes`);
second.kill("SIGTERM");
