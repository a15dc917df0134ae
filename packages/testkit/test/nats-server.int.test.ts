import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connectBus, intakeStreamSpec } from "@harmovela/bus";
import { freePort, startNatsCluster, startNatsServer } from "@harmovela/testkit";

const RUN = ["--conditions=development", "--import", "tsx", "--input-type=module", "--eval"];
const cwd = fileURLToPath(new URL("..", import.meta.url));

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // There is no such process.
    return false;
  }
};

test("a server is ready when it is handed out, keeps port and store over kills, and leaves nothing", async () => {
  let storeDir = "";
  let pid = 0;
  {
    await using server = await startNatsServer();
    storeDir = server.storeDir;
    assert.match(server.version, /^\d+\.\d+\.\d+/);
    const first = server.pid ?? 0;
    assert.ok(isAlive(first));
    const bus = await connectBus({ servers: server.url, name: "test" });
    await bus.provision(intakeStreamSpec("tasks"));
    await bus.store("hv.acme.in.tasks.a.task.created", {}, new Uint8Array([1]));
    await bus.close();
    await server.kill();
    assert.equal(server.pid, undefined);
    assert.equal(isAlive(first), false);
    await server.restart();
    const again = await connectBus({ servers: server.url, name: "test" });
    assert.equal((await again.streamState("HV_IN_TASKS"))?.lastSeq, 1);
    await again.close();
    await server.stop();
    await server.restart();
    pid = server.pid ?? 0;
    assert.ok(pid > 0 && pid !== first);
  }
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(storeDir), false);
});

test("a port that is taken is refused when it was asked for", async () => {
  const port = await freePort();
  const squatter = createServer().listen(port, "127.0.0.1");
  await new Promise((resolve) => squatter.once("listening", resolve));
  await assert.rejects(startNatsServer({ port }), /address already in use/);
  squatter.close();
});

test("what cannot be started says so", async () => {
  await assert.rejects(startNatsServer({ binary: "/does/not/exist" }), /cannot be started/);
  await assert.rejects(startNatsServer({ config: "no such option" }), /has ended/);
});

test("a process that ends takes its server with it", async () => {
  const child = spawn(
    process.execPath,
    [
      ...RUN,
      `import { startNatsServer } from "@harmovela/testkit";
       const server = await startNatsServer();
       process.stdin.once("data", () => process.exit(0));
       console.log(server.port);`,
    ],
    { cwd, stdio: ["pipe", "pipe", "ignore"] },
  );
  const timer = setTimeout(() => child.kill("SIGKILL"), 30_000);
  const [port] = await once(child.stdout, "data");
  const link = createConnection(Number(String(port)), "127.0.0.1");
  await once(link, "connect");
  // A killed server may reset the connection instead of closing it: it is gone either way.
  const gone = new Promise((resolve) => {
    link.once("error", resolve);
    link.once("close", resolve);
  });
  link.resume();
  child.stdin.write("end");
  await gone;
  clearTimeout(timer);
});

test("a server that is not stopped does not hold its process up", async () => {
  const child = spawn(
    process.execPath,
    [
      ...RUN,
      `import { startNatsServer } from "@harmovela/testkit";
       await startNatsServer();`,
    ],
    { cwd, stdio: "ignore" },
  );
  const timer = setTimeout(() => child.kill("SIGKILL"), 30_000);
  const [status] = await once(child, "exit");
  clearTimeout(timer);
  assert.equal(status, 0);
});

test("a cluster keeps three copies of a stream while any one of its servers is killed", async () => {
  await using cluster = await startNatsCluster();
  assert.deepEqual([...cluster.servers.keys()].sort(), ["n1", "n2", "n3"]);
  await using bus = await connectBus({ servers: cluster.urls, name: "test" });
  await bus.provision(intakeStreamSpec("tasks", { replicas: 3 }));
  await bus.store("hv.acme.in.tasks.a.task.created", {}, new Uint8Array([1]));
  const answer = await bus.nats.request("$JS.API.STREAM.INFO.HV_IN_TASKS");
  const { cluster: copies } = answer.json<{ cluster: { leader: string; replicas: object[] } }>();
  assert.equal(copies.replicas.length, 2);
  const leader = cluster.servers.get(copies.leader);
  await leader?.kill();
  const deadline = performance.now() + 30_000;
  let lastSeq: number | undefined;
  while (lastSeq !== 1 && performance.now() < deadline) {
    lastSeq = (await bus.streamState("HV_IN_TASKS").catch(() => undefined))?.lastSeq;
  }
  assert.equal(lastSeq, 1);
  await leader?.restart();
});
