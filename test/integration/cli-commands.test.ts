/** The commands around one running stack, each as a process of its own. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "@harmovela/testkit";
import { CliProcess, cli, eventsOf, line } from "./cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "harmovela-commands-"));
let up: CliProcess;
let server: string[];
let port: number;

before(async () => {
  port = await freePort();
  server = ["--server", `nats://127.0.0.1:${port}`];
  up = new CliProcess(["up", "--store", join(folder, "store"), "--port", String(port)]);
  await up.until(({ stdout }) => stdout.includes("Ctrl-C"));
});

after(async () => {
  await up[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await cli([...args, ...server]);
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  return stdout;
};

const refused = async (...args: string[]): Promise<string> => {
  const { code, stderr } = await cli([...args, ...server]);
  assert.equal(code, 1, args.join(" "));
  assert.equal(stderr.trim().split("\n").length, 1, stderr);
  return stderr;
};

test("up says where it is, what to watch, and what it does not promise", () => {
  for (const said of [
    `nats://127.0.0.1:${port}`,
    "hv.default.ev.>",
    "harmovela demo",
    "OFF",
    "power failure",
    join(folder, "store"),
  ]) {
    assert.ok(up.stdout.includes(said), said);
  }
});

test("a second stack on the port or on the store is refused in one clear line", async () => {
  const same = await cli(["up", "--store", join(folder, "other"), "--port", String(port)]);
  assert.equal(same.code, 1);
  assert.match(same.stderr, /in use.*--server/);
  const store = await cli([
    "up",
    "--store",
    join(folder, "store"),
    "--port",
    String(await freePort()),
  ]);
  assert.equal(store.code, 1);
  assert.match(store.stderr, /in use by nats-server/);
});

test("the demo goes as told and is seen by a tail, which escapes what agents write", async () => {
  await using tail = new CliProcess(["tail", "--from-start", "--type", "task.*", ...server]);
  const told = await ok("demo", "--pace", "40");
  assert.match(told, /still has 2 live children/);
  assert.match(told, /All settled, as told/);
  await ok(
    "publish",
    "task.submitted",
    "--task",
    "evil_1",
    "--as",
    "agent:w\u043erker",
    "--payload",
    JSON.stringify({ description: "\u001b[2J\u202egone" }),
  );
  await tail.until(({ stdout }) => stdout.includes("evil_1"));
  assert.ok(tail.stdout.includes("agent:w\\u{43e}rker"));
  assert.ok(tail.stdout.includes("\\u{1b}[2J\\u{202e}gone"));
  assert.ok(!tail.stdout.includes("event.rejected"), "the filter is for tasks");
  tail.child.kill("SIGINT");
  assert.equal((await tail.end()).code, 0);
});

test("publish, tree, why and cancel work on one task", async () => {
  const say = ["--as", "agent:boss"];
  await ok("publish", "task.submitted", "--task", "top", "--target", "agent:boss", ...say);
  await ok("publish", "task.started", "--task", "top", ...say);
  await ok("publish", "task.submitted", "--task", "sub", "--parent", "top", ...say);
  assert.match(await refused("publish", "task.completed", "--task", "top", ...say), /task_error/);
  assert.match(await refused("publish", "task.progress", "--task", "top"), /unauthorized/);
  assert.match(await refused("publish", "no.such.type"), /unknown_event_type/);
  const tree = await ok("tree", "top");
  assert.deepEqual(
    tree
      .trim()
      .split("\n")
      .map((row) => row.trim()),
    ["top  started  agent:boss", "└─ sub  submitted"],
  );
  assert.match(
    await ok("why", "top"),
    /^top \(started, owner agent:boss\) waits for 1 live child: sub/,
  );
  assert.match(await refused("why", "nothing"), /task_error/);
  assert.match(
    await ok("cancel", "top", "--now", "--wait", "--reason", "enough", ...say),
    /top cancelled/,
  );
  assert.match(await ok("why", "sub"), /cancelled by the cancellation of its ancestor top/);
});

test("beliefs lists what is claimed, and why says how it stands", async () => {
  const claim = (agent: string, value: unknown) =>
    ok(
      "publish",
      "memory.fact.added",
      "--as",
      agent,
      "--payload",
      JSON.stringify({ fact_id: "gate", value }),
    );
  await claim("agent:app", "A12");
  await claim("agent:board", "B3\u202e");
  const rows = (await ok("beliefs", "memory:", "--state", "contradicted")).trim().split("\n");
  assert.equal(rows.length, 2);
  assert.match(
    rows[0] ?? "",
    /^memory:gate {2}"A12" {2}agent:app {2}contradicted {2}is contradicted by/,
  );
  assert.match(
    rows[1] ?? "",
    /"B3\\u\{202e\}" {2}agent:board {2}contradicted {2}is contradicted by agent:app/,
  );
  const [first = ""] = (await ok("beliefs", "--json", "--limit", "1")).split("\n");
  const { key, source, event_id: event } = JSON.parse(first) as Record<string, string>;
  assert.deepEqual([key, source], ["memory:gate", "agent:app"]);
  const mine = /as agent:app said .* is contradicted by agent:board/;
  assert.match(await ok("why", "belief:memory:gate", "--source", "agent:app"), mine);
  assert.match(await ok("why", `belief:${event}`), mine);
  assert.match(await refused("why", "belief:nothing"), /nothing is claimed/);
});

test("tail --json prints the envelopes of one task", async () => {
  await using tail = new CliProcess(["tail", "--json", "--from-start", "--task", "top", ...server]);
  await tail.until(({ events }) => events.some(({ type }) => type === "task.cancelled"));
  assert.ok(tail.events.every((event) => event.task_id === "top"));
  assert.ok(tail.events.every((event) => event.delivery?.cursor?.startsWith("HV_LOG_TASKS:")));
});

test("stdio works on a running stack as well", async () => {
  const input = line("environment.observed", { id: "through-stdio" });
  const { code, stdout, stderr } = await cli(["stdio", ...server], { input });
  assert.equal(code, 0, stderr);
  assert.deepEqual(
    eventsOf(stdout).map(({ type }) => type),
    ["environment.observed", "event.acknowledged"],
  );
});

test("check finds nothing on the server, and what is wrong in a file", async () => {
  const said = await ok("check", "--save", folder);
  assert.match(said, /^ok HV_LOG_TASKS/m);
  const file = join(folder, "HV_LOG_TASKS.ndjson");
  const same = await cli(["check", "--file", file]);
  assert.equal(same.code, 0, same.stdout);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const twice = lines.findIndex((entry) => entry.includes("task.started"));
  writeFileSync(file, [...lines.slice(0, twice), ...lines.slice(twice + 1)].join("\n"));
  const broken = await cli(["check", "--file", file]);
  assert.equal(broken.code, 1);
  assert.match(broken.stdout, /^BROKEN HV_LOG_TASKS/m);
  assert.match((await cli(["check", "--file", join(folder, "none")])).stderr, /no such file/i);
});

test("doctor finds a running stack well", async () => {
  const findings = JSON.parse(await ok("doctor", "--json")) as { is: string; what: string }[];
  assert.deepEqual(
    findings.filter(({ is }) => is === "bad"),
    [],
  );
  for (const said of [
    "nats-server",
    "JetStream",
    "HV_LOG_TASKS",
    "HV_CHECKPOINTS",
    "leader",
    "clock",
    "power",
  ]) {
    assert.ok(
      findings.some(({ what }) => what.includes(said)),
      said,
    );
  }
});

test("nobody there is one clear line", async () => {
  const nowhere = ["--server", `nats://127.0.0.1:${await freePort()}`];
  for (const command of [["tail"], ["doctor"], ["stdio"]]) {
    const { code, stderr } = await cli([...command, ...nowhere]);
    assert.equal(code, 1, command.join(" "));
    assert.match(stderr, /^harmovela: connection_error: .*\n$/);
  }
});

test("Ctrl-C stops up in order", async () => {
  up.child.kill("SIGINT");
  const { code, stdout, stderr } = await up.end();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Stopping/);
  assert.equal(stderr, "");
});
