/** One agent floods a service that knows who speaks: the others are heard, and so is it when it stops (architecture, section 4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HEADER, logStream } from "@harmovela/bus";
import { checkLog } from "@harmovela/check";
import type { ErrorPayload } from "@harmovela/failure";
import type { SourceLimits } from "@harmovela/host";
import { headers } from "@nats-io/transport-node";
import { eventually } from "../chaos/deadline.ts";
import { envelope } from "../chaos/sender.ts";
import { readRecords } from "../chaos/stored-log.ts";
import { accepted, DEADLINE_MS, HONEST, MALLORY } from "./attack-scene.ts";
import { Stage } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

/** A quarter of what is usual, so that a slow machine is flooded too. */
const LIMITS: SourceLimits = { messagesPerSecond: 500, bytesPerSecond: 1_000_000 };
/** Ten times what one source may send at once. */
const MESSAGES = 50_000;
/** Published without a look at what else there is to do. */
const CHUNK = 1_000;
const GARBAGE = ["{", '{"id":"a","id":"b"}', "\xff\xfe", `{"payload":${"[".repeat(500)}`, ""];
/** A refusal is logged by itself: a burst, and so many a second (architecture, section 4). */
const LOGGED_BURST = 200;
const LOGGED_PER_S = 20;

/** How its messages were answered, by the reason of the refusal. */
async function flood(mallory: PlainAgent, count: number): Promise<Map<string, number>> {
  const inbox = mallory.inbox();
  const told = new Map<string, number>();
  mallory.nats.subscribe(inbox, {
    callback: (_error, message) => {
      const { payload } = message.json<{ payload: { error?: Partial<ErrorPayload> } }>();
      const { code = "none", details, retryable } = payload.error ?? {};
      const key = `${code} ${String(details?.reason ?? "unreadable")} ${String(retryable)}`;
      told.set(key, (told.get(key) ?? 0) + 1);
    },
  });
  const all = headers();
  all.set(HEADER.replyTo, inbox);
  const subject = mallory.intake("task.submitted");
  for (let sent = 0; sent < count; sent += 1) {
    const body = Buffer.from(GARBAGE[sent % GARBAGE.length] ?? "", "latin1");
    mallory.nats.publish(subject, body, { headers: all });
    if (sent % CHUNK === CHUNK - 1) await mallory.nats.flush();
  }
  return told;
}

const LIMITED = "internal_error rate_limited true";
const UNREADABLE = "invalid_envelope unreadable false";

test("fifty thousand messages of one agent: others are answered, it is told, and it is heard again", async (t) => {
  const agents = [HONEST, MALLORY].map((name) => ["acme", name] as const);
  await using stage = await Stage.open(agents, { limits: LIMITS });
  const mallory = await stage.agent("acme", MALLORY);
  const honest = await stage.agent("acme", HONEST);
  const service = stage.services[0];
  assert.ok(service !== undefined);
  await honest.honest("before");

  const started = performance.now();
  let slowestMs = 0;
  let isOver = false;
  let tasks = 0;
  const work = async (): Promise<void> => {
    while (!isOver) {
      const asked = performance.now();
      await accepted(honest.say(envelope(HONEST, "task.submitted", `task_${tasks}`)));
      slowestMs = Math.max(slowestMs, performance.now() - asked);
      tasks += 1;
    }
  };
  const working = work();
  const told = await flood(mallory, MESSAGES);
  const answered = (): number => [...told.values()].reduce((sum, count) => sum + count, 0);
  await eventually(DEADLINE_MS, "it is told about each", () =>
    answered() === MESSAGES ? true : undefined,
  );
  isOver = true;
  await working;
  const seconds = (performance.now() - started) / 1_000;
  const limited = told.get(LIMITED) ?? 0;
  t.diagnostic(
    `${stage.server.version}: ${MESSAGES} in ${seconds.toFixed(1)} s, ${limited} refused unread; ` +
      `${tasks} honest tasks meanwhile, slowest verdict ${slowestMs.toFixed(0)} ms`,
  );

  assert.deepEqual([...told.keys()].sort(), [LIMITED, UNREADABLE]);
  const most = LIMITS.messagesPerSecond * (10 + seconds);
  assert.ok(MESSAGES - limited <= most, `${MESSAGES - limited} read of at most ${most}`);
  assert.ok(limited > 0);
  assert.ok(tasks >= 2, `${tasks} honest tasks`);
  const { counters, alarms } = service.host.status();
  assert.equal(counters.limited, limited);
  assert.equal(counters.rejected, MESSAGES);
  assert.deepEqual(
    alarms.map(({ alarm }) => alarm),
    [`${MALLORY} of acme sends more than is judged`],
  );
  const task = "after";
  await mallory.honest(task);
  await assertCounted(stage, seconds);
  const records = await readRecords(stage.operator, "tasks");
  const report = checkLog(records, { domain: "tasks", stream: logStream("tasks") });
  assert.deepEqual(report.findings, []);
});

/** Each refusal is in the log, by itself within the rate, or counted under the name of who was refused. */
async function assertCounted(stage: Stage, seconds: number): Promise<void> {
  const log = logStream("tasks");
  const logged: number[] = [];
  await eventually(DEADLINE_MS, "all are logged or counted", async () => {
    const { logs } = await stage.picture();
    const entries = logs.get("tasks") ?? [];
    const alone = entries.filter((entry) => / hv\.acme\.log\.\S+\.event\.rejected /.test(entry));
    const counted = entries.flatMap((entry) => {
      const body = / hv\.-\.ctl\.tasks\.refused (.*)$/.exec(entry)?.[1];
      if (body === undefined) return [];
      const { counts } = JSON.parse(body) as { counts: Record<string, number> };
      assert.deepEqual(Object.keys(counts), [`acme ${MALLORY}`]);
      return Object.values(counts);
    });
    logged.splice(0, logged.length, alone.length);
    const sum = counted.reduce((total, count) => total + count, alone.length);
    return sum === MESSAGES ? true : undefined;
  });
  const most = LOGGED_BURST + LOGGED_PER_S * (seconds + 5);
  assert.ok((logged[0] ?? 0) <= most, `${logged[0]} entries of ${log}, at most ${most}`);
}
