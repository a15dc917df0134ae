/**
 * Agents and an observer on a plain NATS client, which know nothing of this project's packages:
 * what they were told and what they saw is what the log is compared with.
 *
 * Argument: {url, tenants, agents, seed, mix: "plain" | "all"} as JSON. Prints lines of JSON:
 * {kind: "verdict", …} for each answered envelope, {kind: "seen", …} for each message of a core
 * subscription on `hv.>` under `ev`, {kind: "tried", …} for each on its way to a log. "stop" on stdin: agents end what they began, then it exits.
 */
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { connect, headers } from "@nats-io/transport-node";

const RESEND_MS = 400;
const GIVE_UP_MS = 500_000;
const { url, tenants, agents, seed, mix } = JSON.parse(process.argv[2]);

const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** A small seeded generator (mulberry32). */
function random(start) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const nats = await connect({
  servers: url,
  name: "recorder",
  maxReconnectAttempts: -1,
  reconnectTimeWait: 100,
  ignoreAuthErrorAbort: true,
});

let isStopping = false;
let sent = 0;
let resent = 0;
const inbox = `_INBOX.recorder${process.pid}`;
const waiting = new Map();
nats.subscribe(`${inbox}.*`, {
  callback: (error, message) => {
    if (error) return;
    waiting.get(message.subject)?.(message.json());
    waiting.delete(message.subject);
  },
});
nats.subscribe("hv.>", {
  callback: (error, message) => {
    if (error) return;
    const { subject, data } = message;
    const area = subject.split(".")[2];
    const sha = () => createHash("sha256").update(data).digest("hex");
    if (area === "log") print({ kind: "tried", subject, sha: sha() });
    if (area !== "ev") return;
    const seq = Number(message.headers?.get("Nats-Sequence") ?? "-1");
    print({ kind: "seen", seq, subject, sha: sha() });
  },
});
await nats.flush();

/** Sends the same bytes until there is an answer. */
async function send(agent, type, more) {
  sent += 1;
  const id = `evt_${seed}_${process.pid}_${sent}`;
  const { tenant, source } = agent;
  const body = JSON.stringify({
    spec_version: "0.2",
    id,
    type,
    source,
    created_at: new Date().toISOString(),
    payload: {},
    ...more,
  });
  const subject = `hv.${tenant}.in.tasks.${source}.${type}`;
  const reply = `${inbox}.${sent}`;
  const started = performance.now();
  const verdict = await new Promise((resolve, fail) => {
    const publish = () => {
      if (performance.now() - started > GIVE_UP_MS) {
        clearInterval(timer);
        fail(new Error(`${id} ${type} was never answered`));
        return;
      }
      const header = headers();
      header.set("Hv-Reply-To", reply);
      try {
        nats.publish(subject, body, { headers: header });
      } catch {
        // Not connected now: the next attempt.
      }
    };
    const timer = setInterval(() => {
      resent += 1;
      publish();
    }, RESEND_MS);
    waiting.set(reply, (answer) => {
      clearInterval(timer);
      resolve(answer);
    });
    publish();
  });
  const { cursor, pending = false, duplicate = false, error } = verdict.payload;
  print({
    kind: "verdict",
    tenant,
    id,
    type,
    verdict: verdict.type,
    cursor,
    pending,
    duplicate,
    error,
  });
  return verdict.type === "event.acknowledged";
}

let tasks = 0;
async function submit(agent, more = {}, isStarted = true) {
  tasks += 1;
  const task_id = `task_${seed}_${process.pid}_${tasks}`;
  await send(agent, "task.submitted", { task_id, ...more });
  if (isStarted) await send(agent, "task.started", { task_id });
  return task_id;
}

async function tree(agent) {
  const root = await submit(agent);
  const middle = await submit(agent, { parent_task_id: root });
  const leaf = await submit(agent, { parent_task_id: middle });
  await submit(agent, { parent_task_id: middle }, false);
  return { root, middle, leaf };
}

const scripts = {
  async plain(agent) {
    const task_id = await submit(agent);
    const child = await submit(agent, { parent_task_id: task_id });
    for (let count = 0; count < 3; count += 1) await send(agent, "task.progress", { task_id });
    await send(agent, "task.completed", { task_id: child });
    await send(agent, "task.completed", { task_id });
  },
  async cascade(agent) {
    const { root } = await tree(agent);
    await send(agent, "task.cancelled", { task_id: root });
  },
  async failing(agent) {
    const { root } = await tree(agent);
    const error = { code: "task_error", message: "gave up", retryable: false };
    await send(agent, "task.failed", { task_id: root, payload: { error } });
  },
  async asked(agent) {
    const { root, leaf } = await tree(agent);
    const payload = { grace_period_ms: 150 };
    await send(agent, "task.cancel.requested", { task_id: root, payload });
    await send(agent, "task.cancelled", { task_id: leaf });
  },
  async late(agent) {
    await submit(agent, { payload: { timeout_ms: 300 } });
  },
  async lateTree(agent) {
    const task_id = await submit(agent, { payload: { timeout_ms: 1_500 } });
    await submit(agent, { parent_task_id: task_id });
  },
  async race(agent) {
    const { root, middle, leaf } = await tree(agent);
    await Promise.all([
      send(agent, "task.completed", { task_id: leaf }),
      send(agent, "task.cancelled", { task_id: middle }),
      send(agent, "task.cancelled", { task_id: root }),
      send(agent, "task.completed", { task_id: root }),
    ]);
  },
};

async function work(agent, next) {
  const names = mix === "all" ? Object.keys(scripts) : ["plain"];
  while (!isStopping) await scripts[names[Math.floor(next() * names.length)]](agent);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "stop") isStopping = true;
});
print({ kind: "ready" });
await Promise.all(
  tenants.flatMap((tenant, place) =>
    Array.from({ length: agents }, (_, number) =>
      work({ tenant, source: `agent:${number}` }, random(seed + place * 1_000 + number)),
    ),
  ),
);
await nats.flush();
print({ kind: "end", sent, resent });
await nats.close();
process.exit(0);
