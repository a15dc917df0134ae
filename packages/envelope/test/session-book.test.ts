import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkPayload,
  createSessionBook,
  type DomainEntry,
  describeSessions,
  type Envelope,
  evolveSession,
  findSession,
  HeartbeatMemory,
  judgeConditions,
  judgeSession,
  profilesInForce,
  SESSION_RETENTION_MS,
  type SessionBook,
  sessionState,
} from "../src/index.ts";

const LENIENT = { strictSessions: false, defaultProfiles: [] };
const STRICT = { strictSessions: true, defaultProfiles: [] };
const ARS = "harmovela.runtime-semantics.v1";

let seq = 0;

function event(type: string, fields: Partial<Envelope> = {}): Envelope {
  return {
    spec_version: "0.2",
    id: `evt_${type}`,
    type,
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    session_id: "s",
    payload: { session_id: "s" },
    ...fields,
  };
}

function entry(envelope: Envelope, isDerived = false, at = 1000): DomainEntry {
  seq += 1;
  const cause = isDerived ? { owed: "hv_x" } : { in: seq };
  return { kind: "event", seq, tenant: "acme", cause, at, epoch: 1, prev: 0, seen: {}, envelope };
}

const ready = event("session.ready", {
  source: "service:delegation-coordinator",
  payload: { session_id: "s", capabilities: { profiles: [ARS, 7], heartbeat_interval_ms: 50 } },
});

function folded(...entries: DomainEntry[]): SessionBook {
  const book = createSessionBook();
  for (const each of entries) evolveSession(book, each);
  return book;
}

test("5.1 created, opened, ready, closed", () => {
  const book = createSessionBook();
  const states = [sessionState(book, "acme", "s")];
  for (const each of [
    entry(event("session.opened")),
    entry(ready, true),
    entry(event("session.closed")),
  ]) {
    evolveSession(book, each);
    states.push(sessionState(book, "acme", "s"));
  }
  assert.deepEqual(states, ["created", "opened", "ready", "closed"]);
  assert.equal(sessionState(book, "other", "s"), "created");
});

test("B2 profiles are those that the logged answer says, and only a derived one counts", () => {
  const book = folded(entry(event("session.opened")), entry(ready));
  assert.equal(sessionState(book, "acme", "s"), "opened");
  assert.deepEqual(findSession(book, "acme", "s")?.profiles, []);
  evolveSession(book, entry(ready, true));
  assert.deepEqual(findSession(book, "acme", "s")?.profiles, [ARS]);
  assert.equal(findSession(book, "other", "s"), undefined);
});

test("B1 nothing moves a terminal session until it is forgotten", () => {
  const book = folded(entry(event("session.opened")), entry(event("session.error")));
  for (const envelope of [event("session.opened"), ready, event("session.closed")]) {
    evolveSession(book, entry(envelope, envelope === ready));
    assert.equal(sessionState(book, "acme", "s"), "error");
  }
  evolveSession(book, entry(event("environment.observed"), false, 1000 + SESSION_RETENTION_MS));
  assert.equal(sessionState(book, "acme", "s"), "error");
  evolveSession(book, entry(event("environment.observed"), false, 1001 + SESSION_RETENTION_MS));
  assert.equal(sessionState(book, "acme", "s"), "created");
  assert.deepEqual(describeSessions(book), {});
});

test("B1 however many sessions are forgotten, one entry forgets so many and the next go on", () => {
  const book = createSessionBook({ retentionMs: 10 });
  const of = (name: string, id: string) =>
    event(`session.${name}`, { session_id: id, payload: { session_id: id } });
  for (let i = 0; i < 200; i += 1) evolveSession(book, entry(of("closed", `s${i}`)));
  evolveSession(book, entry(of("opened", "live")));
  const left: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    evolveSession(book, entry(event("environment.observed"), false, 2000));
    left.push(book.tenants.get("acme")?.size ?? 0);
  }
  assert.deepEqual(left, [137, 73, 9, 1, 1]);
  assert.equal(sessionState(book, "acme", "live"), "opened");
  assert.equal(book.ended.size, 0);
});

test("an entry whose payload nobody checked moves what it can and breaks nothing", () => {
  const payloads: Envelope["payload"][] = [null, 7, "s", [], {}, { session_id: 7 }];
  for (const payload of payloads) {
    for (const type of ["opened", "ready", "closed", "error", "heartbeat"]) {
      const envelope = event(`session.${type}`, { payload });
      delete envelope.session_id;
      const book = folded(entry(envelope), entry(envelope, true));
      assert.equal(book.tenants.size, 0);
    }
  }
  assert.equal(sessionState(folded(entry(event("session.closed"))), "acme", "s"), "closed");
});

test("5.1 the judgement of a session, by its state", () => {
  const at = (...entries: DomainEntry[]) => folded(...entries);
  const opening = entry(event("session.opened"));
  const books = {
    created: at(),
    opened: at(opening),
    ready: at(opening, entry(ready, true)),
    closed: at(opening, entry(event("session.closed"))),
    error: at(opening, entry(event("session.error"))),
  };
  const rows: [keyof typeof books, string, string | undefined, string | undefined][] = [
    ["created", "environment.observed", undefined, "session_error"],
    ["created", "session.opened", undefined, undefined],
    ["created", "capabilities.requested", undefined, undefined],
    ["created", "session.closed", undefined, "session_error"],
    ["opened", "environment.observed", undefined, undefined],
    ["opened", "session.opened", "session_error", "session_error"],
    ["ready", "session.opened", "session_error", "session_error"],
    ["ready", "session.ready", undefined, undefined],
    ["closed", "session.opened", "session_closed", "session_closed"],
    ["closed", "session.heartbeat", "session_closed", "session_closed"],
    ["closed", "event.acknowledged", "session_closed", "session_closed"],
    ["error", "environment.observed", "session_closed", "session_closed"],
  ];
  for (const [state, type, lenient, strict] of rows) {
    const code = (settings: typeof LENIENT) =>
      judgeSession(books[state], "acme", event(type), settings)?.code;
    assert.deepEqual([code(LENIENT), code(STRICT)], [lenient, strict], `${state} ${type}`);
  }
  assert.equal(judgeSession(books.closed, "other", event("session.opened"), LENIENT), undefined);
});

test("4.2 which profiles are in force", () => {
  const plain = { session_id: "plain", payload: { session_id: "plain", version: "0.2" } };
  const book = folded(
    entry(event("session.opened")),
    entry(ready, true),
    entry(event("session.opened", plain)),
  );
  const settings = { strictSessions: false, defaultProfiles: ["harmovela.core.v1"] };
  const sessionless = event("environment.observed");
  delete sessionless.session_id;
  const unknown = event("environment.observed", { session_id: "unknown", payload: {} });
  const inForce = (envelope: Envelope) => profilesInForce(book, "acme", envelope, settings);
  assert.deepEqual(inForce(event("environment.observed")), [ARS]);
  assert.deepEqual(inForce(event("environment.observed", { session_id: "plain" })), []);
  assert.deepEqual(inForce(unknown), settings.defaultProfiles);
  assert.deepEqual(inForce(sessionless), settings.defaultProfiles);
  const refused = judgeConditions(book, "acme", event("belief.conflict.detected"), settings);
  assert.equal(refused?.code, "invalid_envelope");
  assert.deepEqual(refused?.details?.missing, ["belief_status"]);
  assert.equal(judgeConditions(book, "acme", event("session.closed"), settings), undefined);
});

test("b05: an opening needs session_id and version, an answer session_id and capabilities", () => {
  const rows: [string, Envelope["payload"], boolean][] = [
    ["session.opened", {}, false],
    ["session.opened", { session_id: "s" }, false],
    ["session.opened", { session_id: "s", version: "0.2" }, true],
    ["session.ready", { session_id: "s" }, false],
    [
      "session.ready",
      { session_id: "s", capabilities: { protocol: "harmovela", transports: ["stdio"] } },
      true,
    ],
  ];
  for (const [type, payload, ok] of rows) {
    const result = checkPayload(event(type, { payload }));
    assert.equal(result.ok, ok, `${type} ${JSON.stringify(payload)}`);
    if (!result.ok) assert.equal(result.error.code, "invalid_envelope");
  }
});

test("who had to be forgotten counts as heard later, never as lost earlier", () => {
  const memory = new HeartbeatMemory(100, 2);
  assert.equal(memory.lastHeard("t", "a", "s1"), undefined);
  memory.hear("t", "a", "s1", 200);
  memory.hear("t", "a", "s2", 300);
  memory.hear("t", "a", "s1", 250);
  assert.equal(memory.lastHeard("t", "a", "s1"), 250);
  memory.hear("t", "a", "s1", 240);
  assert.equal(memory.lastHeard("t", "a", "s1"), 250, "time does not go back");
  assert.equal(memory.sinceOf("t"), 100);
  memory.hear("t", "a", "s3", 400);
  assert.equal(memory.lastHeard("t", "a", "s2"), undefined);
  assert.equal(memory.sinceOf("t"), 300);
  assert.equal(memory.lastHeard("t", "b", "s1"), undefined);
});

test("a tenant that makes up sessions is missed late itself, and nobody else is", () => {
  const memory = new HeartbeatMemory(100, 10);
  memory.hear("quiet", "a", "s", 200);
  for (let at = 0; at < 1_000; at += 1) memory.hear("loud", "a", `s${at}`, 300 + at);
  assert.equal(memory.lastHeard("quiet", "a", "s"), 200);
  assert.equal(memory.sinceOf("quiet"), 100);
  assert.equal(memory.sinceOf("nobody"), 100);
  assert.equal(memory.sinceOf("loud"), 300 + 990);
  assert.equal(memory.lastHeard("loud", "a", "s999"), 300 + 999);
  assert.equal(memory.lastHeard("loud", "a", "s990"), undefined);
  // Many tenants that are made up: who is forgotten counts as heard later.
  for (let at = 0; at < 100; at += 1) memory.hear(`t${at}`, "a", "s", 2_000 + at);
  assert.equal(memory.lastHeard("t99", "a", "s"), undefined);
  assert.ok(memory.sinceOf("t99") >= 2_099);
  assert.equal(memory.lastHeard("quiet", "a", "s"), 200);
});
