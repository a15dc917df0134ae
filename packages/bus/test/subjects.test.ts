import assert from "node:assert/strict";
import { test } from "node:test";
import {
  controlSubject,
  DOMAINS,
  decodeToken,
  type EntrySelection,
  encodeToken,
  entryFilter,
  evSubject,
  INTAKE_SUBJECT_LENGTH_MAX,
  intakeSubject,
  isPublishable,
  isTypePattern,
  isUnderInbox,
  liveSubject,
  logSubject,
  parseControlSubject,
  parseEvSubject,
  parseIntakeSubject,
  parseLogSubject,
  parseRpcSubject,
  rpcSubject,
} from "@harmovela/bus";
import fc from "fast-check";

const HOSTILE = [
  "a b",
  "a..b",
  "a.b",
  ".",
  "*",
  ">",
  "-",
  "--",
  "%",
  "%2D",
  "%2d",
  "agent:x",
  "user@host/path=1+2~3",
  "!'()*",
  "\r\nPUB x 0\r\n",
  "\u0000",
  "\u007f",
  "é",
  "e\u0301",
  "работник",
  "👩‍🚀",
  "\u202eabc",
  "__proto__",
];

const name = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter(isWellFormed),
);
const type = fc.oneof(
  fc.constantFrom("task.created", "a", "a..b", ".", "..", "-", "a.-.b", "task.*", "x y.>"),
  fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(".")),
);
const domain = fc.constantFrom(...DOMAINS);

function isWellFormed(text: string): boolean {
  return Buffer.from(text, "utf8").toString("utf8") === text;
}

test("plain names stand in a subject as they are, everything else is escaped", () => {
  const rows: [string | undefined, string][] = [
    [undefined, "-"],
    ["", "-"],
    ["-", "%2D"],
    ["--", "--"],
    ["agent:worker-1", "agent:worker-1"],
    ["a_b@c=d/e+f~g", "a_b@c=d/e+f~g"],
    ["a b", "a%20b"],
    ["a.b", "a%2Eb"],
    ["*", "%2A"],
    [">", "%3E"],
    ["%", "%25"],
    ["!'()", "%21%27%28%29"],
    ["é", "%C3%A9"],
    ["😀", "%F0%9F%98%80"],
    ["\r\n", "%0D%0A"],
  ];
  for (const [text, token] of rows) {
    assert.equal(encodeToken(text), token);
    assert.equal(decodeToken(token), text === "" ? undefined : text);
  }
});

test("a token has one spelling; every other is refused", () => {
  const bad = [
    "",
    "%2d",
    "%41",
    "%2",
    "%",
    "%GG",
    "a b",
    "a.b",
    "*",
    ">",
    "é",
    "%FF",
    "%ED%A0%80",
    "%C0%AE",
    "%20%",
  ];
  for (const token of bad) assert.equal(decodeToken(token), undefined, token);
});

test("half a surrogate pair has no token", () => {
  for (const text of ["\ud800", "a\udc00b", "\udc00\ud800"]) {
    assert.throws(() => encodeToken(text), { code: "invalid_argument" });
  }
});

test("any name survives the way there and back, and different names have different tokens", () => {
  fc.assert(
    fc.property(name, name, (a, b) => {
      const token = encodeToken(a);
      assert.match(token, /^[A-Za-z0-9_:@=/+~%-]+$/);
      assert.equal(decodeToken(token), a);
      assert.equal(token === encodeToken(b), a === b);
    }),
    { numRuns: 2_000 },
  );
});

test("any text that decodes as a token encodes to the same token", () => {
  const text = fc.string({ unit: fc.constantFrom(..."%2DdCcAa9Ee0-_.~ F"), maxLength: 12 });
  fc.assert(
    fc.property(text, (token) => {
      const decoded = decodeToken(token);
      if (decoded !== undefined) assert.equal(encodeToken(decoded), token);
    }),
    { numRuns: 5_000 },
  );
});

test("the subjects of the grammar", () => {
  const to = { tenant: "acme", domain: "tasks", source: "agent:a" } as const;
  const typed = { ...to, target: "agent:b", type: "task.created" };
  assert.equal(intakeSubject(typed), "hv.acme.in.tasks.agent:a.task.created");
  assert.equal(intakeSubject(to), "hv.acme.in.tasks.agent:a.-");
  assert.equal(logSubject(typed), "hv.acme.log.tasks.agent:a.agent:b.task.created");
  assert.equal(logSubject(to), "hv.acme.log.tasks.agent:a.-.-");
  assert.equal(evSubject(typed), "hv.acme.ev.tasks.agent:a.agent:b.task.created");
  assert.equal(controlSubject("acme", "tasks", "begun"), "hv.acme.ctl.tasks.begun");
  assert.equal(controlSubject(undefined, "tasks", "epoch"), "hv.-.ctl.tasks.epoch");
  assert.equal(liveSubject(typed), "hv.acme.live.agent:a.task.created");
  assert.equal(rpcSubject({ ...to, verb: "tree" }), "hv.acme.rpc.agent:a.tasks.tree");
});

test("any address survives the way there and back", () => {
  const maybe = fc.option(name, { nil: undefined });
  fc.assert(
    fc.property(name, domain, name, maybe, fc.option(type, { nil: undefined }), (...parts) => {
      const [tenant, where, source, target, kind] = parts;
      const intake = { tenant, domain: where, source, type: kind };
      const entry = { ...intake, target };
      const subjects = [intakeSubject(intake), logSubject(entry), evSubject(entry)];
      for (const subject of subjects) assert.ok(isPublishable(subject), subject);
      assert.deepEqual(parseIntakeSubject(subjects[0] ?? ""), intake);
      assert.deepEqual(parseLogSubject(subjects[1] ?? ""), entry);
      assert.deepEqual(parseEvSubject(subjects[2] ?? ""), entry);
      const rpc = { tenant, source, domain: where, verb: "history" };
      assert.deepEqual(parseRpcSubject(rpcSubject(rpc)), rpc);
      const control = { tenant: target, domain: where, kind: source };
      assert.deepEqual(parseControlSubject(controlSubject(target, where, source)), control);
    }),
    { numRuns: 2_000 },
  );
});

test("what is not in the grammar is no address", () => {
  const bad = [
    "",
    "hv",
    "hv.acme.in.tasks.a",
    "hv.acme.in.tasks",
    "xx.acme.in.tasks.a.task.created",
    "hv.acme.log.tasks.a.task.created",
    "hv.acme.in.others.a.task.created",
    "hv.acme.in.TASKS.a.task.created",
    "hv.-.in.tasks.a.task.created",
    "hv.acme.in.tasks.-.task.created",
    "hv..in.tasks.a.task.created",
    "hv.acme.in.tasks.a.task..created",
    "hv.acme.in.tasks.%61.task.created",
    "hv.acme.in.tasks.a.task.%63reated",
    "hv.acme.in.tasks.a.task.*",
    "hv.acme.in.tasks.>",
    "hv.*.in.tasks.a.b",
    // The dots of a type part tokens: a rule about task.created must not be passed by another spelling.
    "hv.acme.in.tasks.a.task%2Ecreated",
    "hv.acme.in.tasks.a.%2E",
    `hv.acme.in.tasks.${"x".repeat(INTAKE_SUBJECT_LENGTH_MAX)}.task.created`,
  ];
  for (const subject of bad) assert.equal(parseIntakeSubject(subject), undefined, subject);
  assert.equal(parseLogSubject("hv.acme.ev.tasks.a.b.task.created"), undefined);
  assert.equal(parseEvSubject("hv.acme.log.tasks.a.b.task.created"), undefined);
  assert.equal(parseLogSubject("hv.acme.log.tasks.a.b.task%2Ecreated"), undefined);
  assert.equal(parseLogSubject("hv.acme.log.tasks.a.%62.task.created"), undefined);
  assert.equal(parseRpcSubject("hv.acme.rpc.a.tasks.tree.more"), undefined);
  assert.equal(parseControlSubject("hv.acme.ctl.tasks.-"), undefined);
});

test("a subject that the server would cut the connection for is never built", () => {
  const long = "😀".repeat(1_000);
  assert.equal(decodeToken(encodeToken(long)), long, "the token itself is exact");
  assert.throws(() => intakeSubject({ tenant: "t", domain: "tasks", source: long }), {
    code: "invalid_argument",
  });
  assert.throws(() => logSubject({ tenant: "t", domain: "tasks", source: "a", target: long }), {
    code: "invalid_argument",
  });
});

test("an answer goes only to a subject strictly under the inbox", () => {
  const prefix = "_INBOX.acme.agent:a.";
  const rows: [string, boolean][] = [
    ["_INBOX.acme.agent:a.x", true],
    ["_INBOX.acme.agent:a.x.y.12", true],
    ["_INBOX.acme.agent:a", false],
    ["_INBOX.acme.agent:a.", false],
    ["_INBOX.acme.agent:ab.x", false],
    ["_INBOX.acme.agent:a..x", false],
    ["_INBOX.acme.agent:a.x.", false],
    ["_INBOX.acme.agent:a.*", false],
    ["_INBOX.acme.agent:a.>", false],
    ["_INBOX.acme.agent:a.x*", false],
    ["_INBOX.acme.agent:a.x y", false],
    ["_INBOX.acme.agent:a.x\r\nPUB hv 0", false],
    ["_INBOX.acme.agent:a.x\u0000", false],
    ["_INBOX.acme.agent:a.x\u2028", false],
    ["_INBOX.other.agent:a.x", false],
    ["hv.acme.log.tasks.a.b.task.created", false],
    ["", false],
    [`_INBOX.acme.agent:a.${"x".repeat(2_000)}`, false],
  ];
  for (const [reply, isFine] of rows) {
    assert.equal(isUnderInbox(reply, prefix), isFine, reply);
    assert.equal(isUnderInbox(reply, prefix.slice(0, -1)), isFine, "with or without the last dot");
  }
  assert.equal(isUnderInbox("_INBOX.x", "_INBOX."), true);
  assert.equal(isUnderInbox("_INBOXES.x", "_INBOX"), false);
});

test("a filter of entries stays in its tenant, its domain and its events", () => {
  const to = { tenant: "acme", domain: "tasks" } as const;
  const filter = (selection: EntrySelection) => entryFilter("log", to, selection);
  assert.equal(filter({}), "hv.acme.log.tasks.*.*.>");
  assert.equal(filter({ type: "*" }), "hv.acme.log.tasks.*.*.>");
  assert.equal(filter({ type: "task.*" }), "hv.acme.log.tasks.*.*.task.>");
  assert.equal(filter({ type: "*.*.failed" }), "hv.acme.log.tasks.*.*.*.*.failed");
  assert.equal(entryFilter("ev", to, { source: "a" }), "hv.acme.ev.tasks.a.*.>");
  for (const name of ["*", ">", "a.b", "a.>", "-", "hv.beta.log.tasks.a", " ", "é"]) {
    const both = filter({ source: name, target: name, type: "task.done" });
    assert.match(both, /^hv\.acme\.log\.tasks\.[^.*> ]+\.[^.*> ]+\.task\.done$/, name);
  }
  for (const type of ["", ".", "a.", ".a", ">", "a.>", "a b", "a*", "**", "A", "a..b", "a.\n"]) {
    assert.equal(isTypePattern(type), false, type);
    assert.throws(() => filter({ type }), { code: "invalid_argument" }, type);
  }
});
