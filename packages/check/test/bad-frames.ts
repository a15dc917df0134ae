import type { BadLog } from "./bad-log.ts";

/** One log per rule of the stream, the headers and the control entries. */
export const badFrames: BadLog[] = [
  {
    rule: "record-order",
    why: "an entry is missing",
    build: (log) => {
      log.submit("task_a");
      log.push({
        cause: "in:2",
        envelope: log.draft("task.submitted", "agent:boss", { task_id: "task_b" }),
        instead: { seq: log.last + 2 },
      });
      return log.last + 1;
    },
  },
  {
    rule: "record-order",
    why: "the log does not start at its start",
    also: ["sequence-gap"],
    build: (log) => {
      log.items.shift();
      log.push({
        tenant: undefined,
        cause: "owed:epoch",
        kind: "epoch",
        body: {},
        instead: { seq: 5 },
      });
      log.push({
        cause: "in:1",
        envelope: log.draft("environment.observed", "sensor:s"),
        instead: { seq: 6, sequence: 9 },
      });
      return 5;
    },
  },
  {
    rule: "subject-form",
    why: "a token is escaped that need not be",
    build: (log) => {
      log.submit("task_a");
      log.send(
        "environment.observed",
        "sensor:s",
        {},
        { subject: "hv.acme.log.tasks.%73ensor:s.-.environment.observed" },
      );
      return log.last;
    },
  },
  {
    rule: "subject-form",
    why: "the entry belongs to another domain",
    build: (log) => {
      log.send(
        "environment.observed",
        "sensor:s",
        {},
        { subject: "hv.acme.log.beliefs.sensor:s.-.environment.observed" },
      );
      return log.last;
    },
  },
  {
    rule: "cause-form",
    why: "the cause is missing",
    build: (log) => {
      log.send("environment.observed", "sensor:s", {}, { headers: { "Hv-Cause": "" } });
      return log.last;
    },
  },
  {
    rule: "cause-form",
    why: "the cause has a sign",
    build: (log) => {
      log.send("environment.observed", "sensor:s", {}, { headers: { "Hv-Cause": "in:+1" } });
      return log.last;
    },
  },
  {
    rule: "at-form",
    why: "the time is no whole number",
    build: (log) => {
      log.send("environment.observed", "sensor:s", {}, { headers: { "Hv-At": "1.5" } });
      return log.last;
    },
  },
  {
    rule: "at-decreases",
    why: "time goes back",
    build: (log) => {
      log.submit("task_a");
      log.wait(-1).submit("task_b");
      return log.last;
    },
  },
  {
    rule: "seen-form",
    why: "a position has no number",
    build: (log) => {
      log.send("environment.observed", "sensor:s", {}, { headers: { "Hv-Seen": "beliefs:x" } });
      return log.last;
    },
  },
  {
    rule: "seen-decreases",
    why: "an observed log is unread again",
    build: (log) => {
      for (const seen of ["beliefs:4,provenance:9", "provenance:9", "beliefs:3,provenance:9"]) {
        log.send("environment.observed", "sensor:s", {}, { headers: { "Hv-Seen": seen } });
      }
      return log.last;
    },
  },
  {
    rule: "epoch-position",
    why: "an epoch entry carries an older epoch in its header",
    build: (log) => {
      log.submit("task_a");
      const body = { epoch: 1, settings: {} };
      const instead = { headers: { "Hv-Epoch": "1" } };
      log.push({ tenant: undefined, cause: "owed:epoch", kind: "epoch", body, instead });
      const seq = log.last;
      log.items.pop();
      log.push({ tenant: undefined, cause: "owed:epoch", kind: "epoch", body, instead });
      return seq;
    },
  },
  {
    rule: "epoch-position",
    why: "an epoch entry names another sequence in its body",
    build: (log) => {
      const data = JSON.stringify({ epoch: 1, settings: {} });
      log.push({
        tenant: undefined,
        cause: "owed:epoch",
        kind: "epoch",
        body: {},
        instead: { data },
      });
      return log.last;
    },
  },
  {
    rule: "intake-order",
    why: "an earlier input is judged later",
    build: (log) => {
      log.intake = 7;
      log.submit("task_a");
      log.intake = 4;
      log.submit("task_b");
      return log.last;
    },
  },
  {
    rule: "intake-order",
    why: "a position goes back",
    build: (log) => {
      log.intake = 7;
      log.submit("task_a");
      log.control("position", { intake: 6 });
      return log.last;
    },
  },
  {
    rule: "intake-twice",
    why: "one message makes two entries",
    build: (log) => {
      log.submit("task_a");
      log.intake -= 1;
      log.submit("task_b");
      return log.last;
    },
  },
  {
    rule: "intake-twice",
    why: "a message is judged that a position has passed",
    build: (log) => {
      log.control("position", { intake: 8 });
      log.intake = 7;
      log.submit("task_a");
      return log.last;
    },
  },
  {
    rule: "control-kind",
    why: "nobody writes such an entry",
    build: (log) => {
      log.control("vacuum", {});
      return log.last;
    },
  },
  {
    rule: "control-tenant",
    why: "a position of one tenant",
    build: (log) => {
      log.push({ cause: "in:1", kind: "position", body: { intake: 1 } });
      return log.last;
    },
  },
  {
    rule: "control-tenant",
    why: "a begun plan of nobody",
    also: ["begun-form"],
    build: (log) => {
      log.control("begun", {});
      return log.last;
    },
  },
  {
    rule: "control-body",
    why: "a position without one",
    build: (log) => {
      log.control("position", { intake: -1 });
      return log.last;
    },
  },
  {
    rule: "control-body",
    why: "no JSON",
    build: (log) => {
      log.control("refused", {}, { data: "{" });
      return log.last;
    },
  },
];
