/** `harmovela stdio`: the real command, the real server, the real services. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CliProcess, cli, eventsOf, line, namesOf } from "./cli-process.ts";

const task = (id: string, state: string, taskId: string, more = {}, payload = {}): string =>
  line(`task.${state}`, { id, task_id: taskId, ...more }, { task_id: taskId, ...payload });

test("each entry once, in log order, leaves first, each verdict after what it speaks of", async () => {
  const lines = [
    task("e1", "submitted", "p"),
    task("e2", "started", "p"),
    task("e3", "submitted", "c", { parent_task_id: "p" }),
    task("e4", "submitted", "g", { parent_task_id: "c" }),
    task("e5", "completed", "p"),
    task("e6", "cancelled", "p"),
    task("e7", "started", "g"),
  ];
  // CRLF, blank lines and a last line without an end.
  const { code, stdout, stderr } = await cli(["stdio"], { input: lines.join("\r\n\n") });
  assert.equal(code, 0);
  assert.equal(stderr, "");
  const events = eventsOf(`${stdout}\n`);
  assert.deepEqual(namesOf(events), [
    "task.submitted e1",
    "event.acknowledged e1 ok",
    "task.started e2",
    "event.acknowledged e2 ok",
    "task.submitted e3",
    "event.acknowledged e3 ok",
    "task.submitted e4",
    "event.acknowledged e4 ok",
    "event.rejected e5 task_error",
    "task.cancelled g",
    "task.cancelled c",
    "task.cancelled e6",
    "event.acknowledged e6 ok",
    "event.rejected e7 task_error",
  ]);
  assert.equal(new Set(events.map((event) => event.id)).size, events.length);
  const cursors = events.flatMap((event) => event.delivery?.cursor ?? []);
  const positions = cursors.map((cursor) => Number(cursor.split(":")[1]));
  assert.deepEqual(
    positions,
    positions.toSorted((a, b) => a - b),
  );
  const [grandchild, child] = events.filter(
    (event) => event.id.startsWith("hv_") && event.type === "task.cancelled",
  );
  assert.equal(child?.causation_id, "e6");
  assert.equal(grandchild?.causation_id, child?.id);
});

/** What an attestation says (spec 3.1). */
const CLAIM = { attestor: "agent:a", method: "seen" };

test("what cannot be read is refused on stderr, what can be is judged, and it goes on", async () => {
  const good = line("environment.observed", { id: "good", source: "sensor:door" });
  const input = Buffer.concat([
    Buffer.from("{not json\n"),
    Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
    Buffer.from(`${JSON.stringify({ big: "x".repeat(700_000) })}\n`),
    Buffer.from('[]\n{"a":1,"a":2}\n'),
    Buffer.from(`${line("environment.observed", { id: "nameless", source: "a\nb" })}\n`),
    Buffer.from(`${line("no.such.type", { id: "unknown" })}\n`),
    Buffer.from(`${line("environment.observed", { id: "foreign", tenant_id: "other" })}\n`),
    Buffer.from(
      `${line("provenance.attestation.added", { id: "early", causation_id: "x" }, CLAIM)}\n`,
    ),
    Buffer.from(`${line("event.acknowledged", { id: "ack" }, { acknowledged_event_id: "x" })}\n`),
    Buffer.from(`${line("session.heartbeat", { id: "beat" })}\n`),
    Buffer.from(good),
  ]);
  const { code, stdout, stderr } = await cli(["stdio"], { input });
  assert.equal(code, 0);
  const refused = eventsOf(stderr);
  assert.deepEqual(
    refused.map((event) => [event.type, (event.payload as { error: { code: string } }).error.code]),
    Array(3).fill(["event.rejected", "invalid_envelope"]),
  );
  assert.deepEqual(
    namesOf(eventsOf(stdout)),
    [
      "event.rejected harness:stdio",
      "event.rejected harness:stdio",
      "event.rejected nameless invalid_envelope",
      "event.rejected unknown unknown_event_type",
      "event.rejected foreign unauthorized",
      "event.acknowledged early ok",
      "event.acknowledged x ok",
      "environment.observed good",
      "event.acknowledged good ok",
    ].map((name) => (name.endsWith("harness:stdio") ? "event.rejected undefined" : name)),
  );
  const early = eventsOf(stdout).find((event) => event.causation_id === "early");
  const { pending } = (early?.payload ?? {}) as { pending?: boolean };
  assert.equal(pending, true, "it waits for its event");
});

test("a repeat is acknowledged and logged once; a repeat of what was refused is refused again", async () => {
  const first = task("e1", "submitted", "t");
  const wrong = task("e2", "completed", "t");
  const input = [first, first, wrong, wrong].join("\n");
  const { stdout } = await cli(["stdio"], { input });
  assert.deepEqual(namesOf(eventsOf(stdout)), [
    "task.submitted e1",
    "event.acknowledged e1 ok",
    "event.acknowledged e1 duplicate",
    "event.rejected e2 task_error",
    "event.rejected e2 task_error",
  ]);
});

test("the first line's tenant is the tenant; an option overrides it", async () => {
  const input = line("environment.observed", { id: "e1", tenant_id: "acme" });
  const named = await cli(["stdio"], { input });
  assert.deepEqual(namesOf(eventsOf(named.stdout)), [
    "environment.observed e1",
    "event.acknowledged e1 ok",
  ]);
  assert.ok(eventsOf(named.stdout).every((event) => event.tenant_id === "acme"));
  const other = await cli(["stdio", "--tenant", "other"], { input });
  assert.deepEqual(namesOf(eventsOf(other.stdout)), ["event.rejected e1 unauthorized"]);
});

test("whatever is answered and whatever follows stays in the tenant, in every domain", async () => {
  const of = (id: string, more: object = {}) => ({ id, tenant_id: "acme", ...more });
  const input = [
    line("context.updated", of("k"), { context_key: "k" }),
    line("task.submitted", of("p", { task_id: "p" }), { task_id: "p" }),
    line("task.submitted", of("c", { task_id: "c", parent_task_id: "p" }), { task_id: "c" }),
    line("task.cancelled", of("x", { task_id: "p" }), { task_id: "p" }),
    line("interruption.requested", of("i", { task_id: "p", interruption_policy: "force_stop" })),
    line("memory.fact.added", of("f"), { fact_id: "f", value: 1 }),
    line("memory.fact.added", of("g", { causation_id: "f" }), { fact_id: "g", value: 2 }),
    line("memory.fact.invalidated", of("r", { belief_status: "retracted" }), { fact_id: "f" }),
    line("provenance.attestation.added", of("a", { causation_id: "k" }), {
      attestor: "agent:planner",
      method: "m",
    }),
    line("provenance.attestation.revoked", of("n", { causation_id: "none" }), { reason: "r" }),
  ];
  const { stdout, stderr } = await cli(["stdio"], { input: input.join("\n") });
  assert.equal(stderr, "");
  const events = eventsOf(stdout);
  const types = new Set(events.map(({ type }) => type));
  for (const type of ["event.rejected", "task.cancelled", "state.invalidated"]) {
    assert.ok(types.has(type), `no ${type}`);
  }
  const strays = events.filter(({ tenant_id: tenant }) => tenant !== "acme");
  assert.deepEqual(namesOf(strays), []);
});

test("a timer shows when it is due, while the input is open, and is not waited for at its end", async () => {
  await using running = new CliProcess(["stdio"]);
  running.send(task("e1", "submitted", "t", {}, { timeout_ms: 50 }));
  await running.until(({ events }) => events.some(({ type }) => type === "task.timed_out"));
  running.send(
    task("e2", "started", "t"),
    task("e3", "submitted", "u", {}, { timeout_ms: 3_600_000 }),
  );
  running.child.stdin.end();
  const { code } = await running.end();
  assert.equal(code, 0);
  const names = namesOf(running.events);
  // The timer may be faster than the answer to what set it.
  assert.deepEqual(names.slice(0, 3).toSorted(), [
    "event.acknowledged e1 ok",
    "task.submitted e1",
    "task.timed_out t",
  ]);
  assert.equal(names[0], "task.submitted e1");
  assert.deepEqual(names.slice(3), [
    "event.rejected e2 task_error",
    "task.submitted e3",
    "event.acknowledged e3 ok",
  ]);
});

test("a store is there again after a kill, and only what is new is printed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-cli-"));
  const store = join(folder, "store");
  try {
    await using first = new CliProcess(["stdio", "--store", store]);
    const vouched = { attestor: "agent:planner", method: "m" };
    first.send(
      task("e1", "submitted", "t"),
      task("e2", "started", "t"),
      line("memory.fact.added", { id: "f", source: "memory:main" }, { fact_id: "f", value: 1 }),
      line("provenance.attestation.added", { id: "a", causation_id: "f" }, vouched),
    );
    await first.until(({ events }) => namesOf(events).includes("event.acknowledged a ok"));
    const server = Number(readFileSync(join(store, "harmovela.lock"), "utf8"));
    first.child.kill("SIGKILL");
    await first.ended;
    const revoke = (id: string) =>
      line("provenance.attestation.revoked", { id, causation_id: "a" }, { reason: "r" });
    const again = [
      task("e3", "progress", "t"),
      task("e4", "completed", "t"),
      revoke("r1"),
      revoke("r2"),
    ];
    const second = await cli(["stdio", "--store", store], { input: again.join("\n") });
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(namesOf(eventsOf(second.stdout)), [
      "task.progress e3",
      "event.acknowledged e3 ok",
      "task.completed e4",
      "event.acknowledged e4 ok",
      "provenance.attestation.revoked r1",
      "event.acknowledged r1 ok",
      "event.rejected r2 protocol_error",
    ]);
    assert.throws(() => process.kill(server, 0), "the killed command's server is still there");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("one process speaks for everybody, so what stands on identity can be negotiated (9.6)", async () => {
  const security = "harmovela.security.v1";
  const coordination = "harmovela.coordination.v1";
  const session = { session_id: "s" };
  const offer = { delegated_by: "agent:planner", delegated_to: "agent:worker", ...session };
  const link = { ...offer, task_id: "c", parent_task_id: "p" };
  const worker = { ...link, source: "agent:worker" };
  const lines = [
    line(
      "session.opened",
      { id: "o", ...session },
      {
        ...session,
        version: "0.2",
        capabilities: { profiles: [coordination] },
      },
    ),
    task("e1", "submitted", "p", session),
    line("delegation.requested", { id: "d1", ...link }),
    line("delegation.accepted", { id: "d2", ...worker }),
    line("delegation.handoff.completed", { id: "d3", ...link, handoff_token: "ht_abc123" }),
    task("e2", "cancelled", "c", { ...session, source: "agent:worker", causation_id: "e1" }),
    line("subscription.requested", { id: "f", ...session }, { types: [] }),
  ];
  const { stdout } = await cli(["stdio"], { input: lines.join("\n") });
  const events = eventsOf(stdout);
  const ready = events.find(({ type }) => type === "session.ready");
  const { capabilities } = (ready?.payload ?? {}) as { capabilities?: { profiles: string[] } };
  assert.deepEqual(capabilities?.profiles, [
    coordination,
    "harmovela.core.v1",
    "harmovela.runtime-semantics.v1",
    security,
  ]);
  // An opaque token proves nothing, and a child has its own reasons while its parent goes on.
  assert.deepEqual(
    namesOf(events).filter((name) => name.includes("reject")),
    [
      "event.rejected d3 unauthorized",
      "event.rejected e2 task_error",
      "subscription.rejected f subscription_rejected",
    ],
  );
});

test("a reader that goes away ends it quietly", async () => {
  await using running = new CliProcess(["stdio"]);
  running.send(line("environment.observed", { id: "e1" }));
  await running.until(({ events }) => events.length > 0);
  running.child.stdout.destroy();
  running.send(line("environment.observed", { id: "e2" }));
  running.send(line("environment.observed", { id: "e3" }));
  const { code, stderr } = await running.end();
  assert.equal(code, 0);
  assert.equal(stderr, "");
});

test("the misuse of options is one clear line and exit code 2", async () => {
  for (const args of [
    ["stdio", "--store", "x", "--server", "nats://127.0.0.1:1"],
    ["stdio", "--tenant", "-"],
    ["no-such-command"],
    ["conformance"],
  ]) {
    const { code, stderr } = await cli(args);
    assert.equal(code, 2, args.join(" "));
    assert.notEqual(stderr, "");
  }
});
