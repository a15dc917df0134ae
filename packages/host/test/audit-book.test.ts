/** The record of questions: bounded, written again until it is known to be stored, and honest about what it lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AUDIT_STREAM, auditStreamSpec, MemoryServer } from "@harmovela/bus";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import pino from "pino";
import { Alarms } from "../src/alarms.ts";
import { AuditBook } from "../src/audit/book.ts";
import { askedRecord } from "../src/audit/record.ts";
import { Counters } from "../src/counters.ts";
import type { AuditRecord } from "../src/index.ts";
import { readAudit } from "./audit-log.ts";

const record = (verb: string): AuditRecord => ({
  at: "2026-11-30T10:00:00Z",
  verdict: "accepted",
  source: "agent:a",
  verb,
});

async function open() {
  const clock = new FakeClock();
  const server = new MemoryServer({ clock, now: () => 1_700_000_000_000 + clock.monotonic() });
  const bus = server.connect({ name: "one" });
  await settled(clock, bus.provision(auditStreamSpec()));
  const counters = new Counters("tasks");
  const alarms = new Alarms(pino({ level: "silent" }), counters);
  const parts = { bus, clock, counters, alarms };
  const book = new AuditBook({ ...parts, domain: "tasks", instance: "i" });
  const verbs = async (): Promise<string[]> =>
    (await settled(clock, readAudit(bus))).map(({ tenant, verb }) => `${tenant} ${verb}`);
  return { ...parts, server, book, verbs };
}

test("a second later it is stored, each tenant's apart", async () => {
  const { clock, book, verbs } = await open();
  book.add("acme", record("task"));
  book.add("beta", record("why"));
  book.add("acme", record("tree"));
  assert.deepEqual(await verbs(), []);
  await pass(clock, 1_100);
  assert.deepEqual((await verbs()).sort(), ["acme task", "acme tree", "beta why"]);
});

test("a batch whose answer was lost is written again as it was, and what came later follows", async () => {
  const { clock, bus, server, book } = await open();
  let answers = 0;
  server.faults.onArrival = () => {
    answers += 1;
    return answers === 1 ? { kind: "unanswered" } : undefined;
  };
  book.add("acme", record("task"));
  await pass(clock, 1_100);
  book.add("acme", record("why"));
  await pass(clock, 10_000);
  const bodies: { batch: string; records: AuditRecord[] }[] = [];
  for (const seq of [1, 2, 3]) {
    const message = await settled(clock, bus.read(AUDIT_STREAM, seq));
    bodies.push(JSON.parse(new TextDecoder().decode(message?.data)));
  }
  assert.deepEqual(bodies[1], bodies[0], "the same batch, to be known by its name");
  assert.deepEqual(
    bodies[2]?.records.map(({ verb }) => verb),
    ["why"],
  );
  assert.notEqual(bodies[2]?.batch, bodies[1]?.batch);
});

test("beyond its bound records are lost, counted, and an alarm; then it goes on", async () => {
  const { clock, server, book, counters, alarms, verbs } = await open();
  server.faults.partition("one");
  for (let n = 0; n < 10_007; n += 1) book.add("acme", record("task"));
  assert.equal(counters.get("audit_lost"), 7);
  server.faults.heal("one");
  await pass(clock, 10_000);
  assert.match(alarms.all()[0]?.alarm ?? "", /lost records/);
  book.add("acme", record("last"));
  await settled(clock, book.close());
  const stored = await verbs();
  assert.deepEqual([stored.length, stored.at(-1)], [10_001, "acme last"]);
});

test("a tenant that asks a lot loses its own records, and does not hold up those of others", async () => {
  const { clock, server, book, counters, verbs } = await open();
  server.faults.partition("one");
  for (let n = 0; n < 10_000; n += 1) book.add("loud", record("task"));
  for (let n = 0; n < 5; n += 1) book.add("quiet", record(`why${n}`));
  for (let n = 0; n < 3; n += 1) book.add("loud", record("late"));
  assert.equal(counters.get("audit_lost"), 8);
  server.faults.heal("one");
  await pass(clock, 10_000);
  await settled(clock, book.close());
  const stored = await verbs();
  assert.equal(stored.length, 10_000);
  const last = stored.indexOf("quiet why4");
  assert.ok(last >= 0 && last < 1_000, "they take turns");
});

test("a batch that nobody will ever take is lost, and what comes after it is not", async () => {
  const { clock, book, counters, alarms, verbs } = await open();
  book.add("t".repeat(5_000), record("task"));
  book.add("beta", record("why"));
  await pass(clock, 5_000);
  assert.deepEqual(await verbs(), ["beta why"]);
  assert.equal(counters.get("audit_lost"), 1);
  assert.deepEqual(
    alarms.all().map(({ alarm }) => /cannot be written|lost/.test(alarm)),
    [true, true],
  );
});

test("a record names what was asked about, and holds nothing else of the question", () => {
  const asker = { source: "agent:a", verb: "task", at: new Date(0), isOperator: true };
  const question = { task_id: "t", key: "k".repeat(200), handoff_token: "secret", event_id: 7 };
  const refusal = { error: { code: "unauthorized", details: { check: "scope" } } };
  assert.deepEqual(askedRecord(asker, Buffer.from(JSON.stringify(question)), refusal), {
    at: "1970-01-01T00:00:00.000Z",
    verdict: "refused",
    source: "agent:a",
    verb: "task",
    task_id: "t",
    code: "unauthorized",
    check: "scope",
    by: "operator",
  });
  for (const odd of ["", "null", "[1]", "{"]) {
    const { verdict } = askedRecord(asker, Buffer.from(odd), { result: 1 });
    assert.equal(verdict, "accepted");
  }
});
