import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  createSessionBook,
  type Envelope,
  type EventEntry,
  endInstance,
  evolveSession,
  type InstanceTable,
  openInstance,
  type SessionInstance,
} from "@harmovela/envelope";

const NAME = "acme";

function entryOf(type: string, source = "agent:w", session = "s"): EventEntry {
  const envelope: Envelope = {
    spec_version: "0.2",
    id: `${type} ${session}`,
    type,
    source,
    created_at: "2026-11-30T10:00:00Z",
    session_id: session,
    payload: {},
  };
  const frame = { seq: 1, tenant: NAME, cause: { in: 1 }, at: 1, epoch: 1, prev: 0, seen: {} };
  return { kind: "event", ...frame, envelope };
}

function scene() {
  const book = createSessionBook();
  const table: InstanceTable<SessionInstance> = { name: NAME, instances: new Map() };
  const tenants = new Map([[NAME, table]]);
  evolveSession(book, entryOf("session.opened"));
  const say = (source = "agent:w", session = "s") =>
    openInstance(book, table, entryOf("task.started", source, session).envelope, (id) => ({
      session: id,
    }));
  const end = (entry: EventEntry) => {
    evolveSession(book, entry);
    return endInstance(book, tenants, entry);
  };
  return { book, table, say, end };
}

describe("an instance of an agent", () => {
  test("is a session that it has opened, the same one for all that it says there", () => {
    const { say, table } = scene();
    const instance = say();
    assert.equal(instance?.session, "s");
    assert.equal(say(), instance);
    assert.equal(table.instances.size, 1);
  });

  test("is none for who speaks in another's session, in one that nobody opened, or in none", () => {
    const { say, book, table } = scene();
    say();
    assert.equal(say("agent:other"), undefined, "also when the session has an instance");
    assert.equal(say("agent:w", "made-up"), undefined);
    const { session_id: _none, ...envelope } = entryOf("task.started").envelope;
    const made = openInstance(book, table, envelope, (session) => ({ session }));
    assert.equal(made, undefined);
    assert.equal(table.instances.size, 1);
  });

  test("ends with its session, and says so once", () => {
    const { say, end, table } = scene();
    const instance = say();
    assert.equal(end(entryOf("session.heartbeat")), undefined);
    const closed = entryOf("session.closed");
    assert.deepEqual(end(closed), { instance, entry: closed });
    assert.equal(table.instances.size, 0);
    assert.equal(end(entryOf("session.error")), undefined);
    assert.equal(say(), undefined, "nobody speaks there any more");
  });
});
