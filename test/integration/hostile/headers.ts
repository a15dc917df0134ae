/** Header blocks that no honest agent sends. */

/** Names of our own headers and of the server's, with values that mean something there or nothing at all. */
const VALUES: readonly (readonly [string, readonly string[]])[] = [
  ["Nats-Msg-Id", ["one and the same", "one and the same", "", "x".repeat(60_000)]],
  ["Nats-Expected-Last-Msg-Id", ["no such id", "one and the same", "x".repeat(60_000)]],
  ["Nats-Expected-Stream", ["HV_IN_TASKS", "HV_LOG_TASKS", "x"]],
  ["Nats-Expected-Last-Sequence", ["0", "1", "-1", "18446744073709551616", "1e3", "x"]],
  ["Nats-Expected-Last-Subject-Sequence", ["0", "7", "-1", "99999999999999999999", "x"]],
  ["Nats-Expected-Last-Subject-Sequence-Subject", [">", "hv.*.log.>", ""]],
  ["Nats-TTL", ["1s", "1", "0", "-1", "never", "999999h", "x"]],
  ["Nats-Rollup", ["all", "sub", "x"]],
  ["Nats-Schedule", ["@at 2020-01-01T00:00:00Z", "@every 1s", "* * * * * *", "x"]],
  ["Nats-Schedule-Target", ["hv.acme.log.tasks.agent:a.-.task.completed"]],
  ["Nats-Schedule-Source", ["hv.acme.in.tasks.agent:a.task.submitted"]],
  ["Nats-Schedule-TTL", ["1s", "x"]],
  ["Nats-Schedule-Rollup", ["sub"]],
  ["Nats-Schedule-Time-Zone", ["Europe/Vienna", "x"]],
  ["Nats-Schedule-Next", ["purge"]],
  ["Nats-Scheduler", ["hv.acme.in.tasks.agent:a.task.submitted"]],
  ["Nats-Batch-Id", ["batch", "x".repeat(100)]],
  ["Nats-Batch-Sequence", ["1", "0", "x"]],
  ["Nats-Batch-Commit", ["1", "eob", "x"]],
  ["Nats-Incr", ["+1", "-1", "x"]],
  ["Nats-Counter-Sources", ["{}", "{"]],
  ["Nats-Stream-Source", ["HV_LOG_TASKS 1", "x"]],
  ["Nats-Marker-Reason", ["MaxAge", "Purge"]],
  ["Nats-Required-Api-Level", ["0", "999"]],
  ["Nats-Trace-Dest", ["_INBOX.trace", ">", ""]],
  ["Nats-Stream", ["HV_LOG_TASKS"]],
  ["Nats-Sequence", ["1"]],
  ["Nats-Subject", ["hv.acme.log.tasks.agent:a.-.task.completed"]],
  ["Nats-Last-Sequence", ["0"]],
  ["Nats-Num-Pending", ["0"]],
  ["Nats-UpTo-Sequence", ["1"]],
  ["Nats-Msg-Size", ["1"]],
  ["Nats-Pending-Messages", ["999999"]],
  ["Nats-Last-Consumer", ["99"]],
  ["Nats-Consumer-Stalled", ["$JS.FC.x"]],
  ["Nats-Service-Error-Code", ["500"]],
  ["KV-Operation", ["DEL", "PURGE"]],
  [
    "traceparent",
    ["", "x", "00-é-1-01", "x".repeat(60_000), `00-${"a".repeat(32)}-${"b".repeat(16)}-01`],
  ],
  ["Hv-Cause", ["in:1", "owed:x"]],
  ["Hv-At", ["0", "99999999999999999"]],
  ["Hv-Epoch", ["1", "999999"]],
  ["Hv-Prev", ["0"]],
  ["Hv-Seen", ["tasks:999999"]],
  ["Hv-Digest", ["x"]],
  ["Hv-Verdict", ["{}", "{"]],
  ["hv-reply-to", ["hv.acme.log.tasks.agent:a.-.task.completed"]],
  ["x".repeat(30_000), ["x"]],
  ["é", ["é"]],
];

/** Several that belong together. */
const SETS: readonly string[] = [
  "Nats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\nNats-Batch-Commit: 1\r\n",
  "Nats-Batch-Id: b\r\nNats-Batch-Sequence: 2\r\n",
  "Nats-Expected-Last-Subject-Sequence: 0\r\nNats-Expected-Last-Subject-Sequence-Subject: hv.x.in.tasks.a.b\r\n",
  "Nats-Expected-Last-Subject-Sequence: 7\r\nNats-Expected-Last-Subject-Sequence-Subject: >\r\n",
  "Nats-Schedule: @every 1s\r\nNats-Schedule-Target: hv.acme.in.tasks.agent:a.task.submitted\r\nNats-Schedule-TTL: 1s\r\n",
  "Nats-Schedule: @at 2020-01-01T00:00:00Z\r\nNats-Schedule-Target: hv.acme.log.tasks.agent:a.-.task.completed\r\n",
  "Nats-Trace-Dest: _INBOX.trace\r\nNats-Trace-Only: true\r\n",
  "Nats-Msg-Id: two\r\nNats-Expected-Last-Msg-Id: one\r\nNats-Rollup: all\r\nNats-TTL: 1s\r\n",
  "a: b\r\n".repeat(9_000),
];

/** What is no header line. */
const BROKEN: readonly string[] = [
  "no colon\r\n",
  ": no name\r\n",
  "name : value\r\n",
  " folded: value\r\n",
  "lone: a\nHv-Epoch: 1\r\n",
  "lone: a\rHv-Epoch: 1\r\n",
  "nul: \0\0\0\r\n",
  "bytes: \xff\xfe\x80\r\n",
  "\r\n",
  "\r\nHv-Epoch: 1\r\n",
];

/** A status of the server's own, which a client takes for a word of the server. */
const STATUSES: readonly string[] = [
  " 100 Idle Heartbeat",
  " 404 No Messages",
  " 408 Request Timeout",
  " 409 Consumer Deleted",
  " 503",
  " 503 No Responders",
  " 999999999999 x",
  " \xff",
];

/** The first lines; the rest of the block follows them. */
export interface Trick {
  status: string;
  lines: string;
}

/** Every one of them, each by itself. */
export function allTricks(): Trick[] {
  return [
    ...VALUES.flatMap(([name, values]) =>
      values.map((value) => ({ status: "", lines: `${name}: ${value}\r\n` })),
    ),
    ...SETS.map((lines) => ({ status: "", lines })),
    ...BROKEN.map((lines) => ({ status: "", lines })),
    ...STATUSES.map((status) => ({ status, lines: "" })),
  ];
}

/** Where a verdict must never go. */
export const ELSEWHERE: readonly string[] = [
  "hv.acme.log.tasks.agent:a.-.task.completed",
  "hv.-.ctl.tasks.epoch",
  "hv.acme.ctl.tasks.begun",
  "hv.acme.ev.tasks.agent:a.-.task.completed",
  "hv.acme.in.tasks.agent:a.task.submitted",
  "$KV.HV_LEASES.tasks",
  "$JS.API.STREAM.PURGE.HV_LOG_TASKS",
  "$JS.API.STREAM.DELETE.HV_LOG_TASKS",
  "$JS.API.STREAM.DELETE.KV_HV_LEASES",
  "$SYS.REQ.SERVER.PING",
  "_INBOX",
  "_INBOX.",
  "_INBOX..x",
  "_INBOX.*",
  "_INBOX.>",
  "_INBOX.a b",
  "_INBOX.a\tb",
  "_INBOX.a\x01b",
  "_inbox.x",
  "_INBOX.x.",
  `_INBOX.${"x".repeat(2_000)}`,
  "x",
];

/** A block whose number tells the message in the stream; `reply` is where its verdict is asked to go. */
export function blockOf(number: number, reply: string | undefined, trick: Trick): string {
  const to = reply === undefined ? "" : `Hv-Reply-To: ${reply}\r\n`;
  return `NATS/1.0${trick.status}\r\nP6-N: ${number}\r\n${to}${trick.lines}\r\n`;
}
