/** A service as a process: configuration, health, signals, exit codes; and the shipped server file. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { findNatsServer } from "@harmovela/bus";
import { freePort, startNatsServer } from "@harmovela/testkit";

const root = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = join(root, "services/delegation-coordinator/src/main.ts");

function start(env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, ["--conditions=development", "--import", "tsx", MAIN], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function health(port: number): Promise<{ code: number; body: Record<string, unknown> }> {
  const until = performance.now() + 30_000;
  for (;;) {
    try {
      // One that never answers would be waited for without end.
      const signal = AbortSignal.timeout(5_000);
      const response = await fetch(`http://127.0.0.1:${port}/healthz`, { signal });
      const body = (await response.json()) as Record<string, unknown>;
      if (response.ok || performance.now() > until) return { code: response.status, body };
    } catch (error) {
      if (performance.now() > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe("the coordinator as a process", () => {
  test("waits for the server, reports its health, drains on SIGTERM and exits 0", async () => {
    const port = await freePort();
    const healthPort = await freePort();
    const child = start({
      HARMOVELA_SERVERS: `nats://127.0.0.1:${port}`,
      HARMOVELA_HEALTH_PORT: String(healthPort),
    });
    try {
      await using _server = await startNatsServer({ port });
      const { code, body } = await health(healthPort);
      assert.equal(code, 200);
      assert.equal(body.domain, "tasks");
      const exit = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await exit, [0, null]);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("says everything that is wrong with its configuration and exits 2", async () => {
    const child = start({
      HARMOVELA_HEALTH_PORT: "many",
      HARMOVELA_REPLICAS: "-1",
      HARMOVELA_LOG_LEVEL: "loud",
      HARMOVELA_ORPHANED_TASKS: "burn",
      HARMOVELA_CREDS_WRITER: "/nowhere/at/all.creds",
    });
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    assert.deepEqual(await once(child, "exit"), [2, null]);
    for (const name of ["HEALTH_PORT", "REPLICAS", "LOG_LEVEL", "CREDS_WRITER", "ORPHANED_TASKS"]) {
      assert.match(said, new RegExp(`HARMOVELA_${name}`));
    }
  });
});

describe("deploy/nats.conf", () => {
  test("is accepted by the server, without sync_interval also by 2.9", () => {
    const binary = findNatsServer() ?? "";
    const shipped = readFileSync(join(root, "deploy/nats.conf"), "utf8");
    const version = spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout;
    const isOld = /v2\.9\./.test(version);
    const file = join(mkdtempSync(join(tmpdir(), "harmovela-conf-")), "nats.conf");
    writeFileSync(file, isOld ? shipped.replace(/^\s*sync_interval.*$/m, "") : shipped);
    const { status, stderr } = spawnSync(binary, ["-c", file, "-t"], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
});
