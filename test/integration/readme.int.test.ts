/** The README's examples are the files in `examples/`, and they do what they say. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTracker } from "@harmovela/belief-tracker";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import {
  generateTokenKeys,
  openService,
  openTokenKeys,
  type RunningService,
} from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const root = fileURLToPath(new URL("../../", import.meta.url));
const readme = readFileSync(`${root}README.md`, "utf8");
const EXAMPLES = [...readme.matchAll(/<!-- example: (\S+) -->\n```\w+\n([\s\S]*?)```\n/g)];

/** Starts an example; it is killed after a minute. */
function start(path: string, url: string) {
  const child = spawn(process.execPath, ["--conditions=development", "--import", "tsx", path], {
    cwd: root,
    env: { ...process.env, HARMOVELA_SERVERS: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
  const ended = once(child, "exit").then(([code]) => {
    clearTimeout(timer);
    return code as number | null;
  });
  return { child, ended, printed: () => printed };
}

async function run(path: string, url: string): Promise<string> {
  const { ended, printed } = start(path, url);
  assert.equal(await ended, 0, printed());
  return printed();
}

describe("README", () => {
  let server: NatsServer;
  let services: RunningService[];
  before(async () => {
    server = await startNatsServer();
    const config = {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
      tokens: await openTokenKeys(await generateTokenKeys()),
    };
    services = [
      await openService(createCoordinator(), config),
      await openService(createTracker(), config),
      await openService(createManager(), config),
    ];
    for (const { host } of services) await host.untilLeading();
  });
  after(async () => {
    for (const service of services) await service.close();
    await server.stop();
  });

  test("shows the examples there are", () => {
    assert.deepEqual(
      EXAMPLES.map(([, path]) => path),
      [
        "examples/agent.ts",
        "examples/plain.mjs",
        "examples/worker.ts",
        "examples/planner.ts",
        "examples/builder.ts",
        "examples/beliefs.ts",
      ],
    );
  });

  for (const [, path = "", shown] of EXAMPLES) {
    test(`${path} stands in the README as it is`, () => {
      assert.equal(shown, readFileSync(root + path, "utf8"));
    });
  }

  test("the agent's completion is refused while its child runs, then accepted", async () => {
    const printed = await run("examples/agent.ts", server.url);
    assert.match(printed, /refused: task_error\nsettled: completed/);
  });

  test("a planner in one process is served by a worker in another", async () => {
    const worker = start("examples/worker.ts", server.url);
    try {
      const printed = await run("examples/planner.ts", server.url);
      assert.match(printed, /accepted by agent:hotels\nbooked: .*Rialto/);
    } finally {
      worker.child.kill("SIGTERM");
    }
    assert.equal(await worker.ended, 0, worker.printed());
  });

  test("a job that was interrupted and whose process was killed goes on in another; each step is done once", async () => {
    const printed = await run("examples/interrupt.ts", server.url);
    const [, before = ""] = /saved by agent:builder after (\d+) floors/.exec(printed) ?? [];
    assert.ok(Number(before) > 0 && Number(before) < 300, printed);
    assert.match(printed, /finished: {"floors":300}/);
    assert.match(printed, /300 floors, each built once, by 2 processes/);
  });

  test("two agents disagree, and one defers until they agree", async () => {
    const printed = await run("examples/beliefs.ts", server.url);
    assert.match(printed, /deferring: contradicted\nwalking to the gate/);
  });

  test("a plain client gets its verdict", async () => {
    const printed = await run("examples/plain.mjs", server.url);
    assert.match(printed, /event\.acknowledged \{[^}]*cursor: 'HV_LOG_TASKS:\d+'/);
  });
});
