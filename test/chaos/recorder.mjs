/**
 * Agents and an observer on a plain NATS client, which know nothing of this project's packages:
 * what they were told and what they saw is what the log is compared with.
 *
 * Argument: {url, tenants, agents, seed, mix: "plain" | "all", restMs} as JSON. Prints lines of JSON:
 * verdict  for each answered envelope
 * token    for each handoff token that was given out
 * seen     for each message of a core subscription on `hv.>` under `ev`
 * tried    for each entry on its way to a log, control entries included
 * "stop" on stdin: agents end what they began, then it exits.
 */
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as pass } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { scriptsOf } from "./recorder-scripts.mjs";

const RESEND_MS = 400;
const GIVE_UP_MS = 500_000;
const ASK_AGAIN_MS = 50;
const { url, tenants, agents, seed, mix, restMs = 0 } = JSON.parse(process.argv[2]);

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
    if (area === "log" || area === "ctl") {
      const epoch = Number(message.headers?.get("Hv-Epoch") ?? "-1");
      print({ kind: "tried", subject, sha: sha(), epoch });
    }
    if (area !== "ev") return;
    const seq = Number(message.headers?.get("Nats-Sequence") ?? "-1");
    print({ kind: "seen", seq, subject, sha: sha() });
  },
});
await nats.flush();

/** Sends the same bytes until they are decided. */
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

/** Asks until there is an answer that asking again would not change. */
async function ask({ tenant, source }, verb, params) {
  const subject = `hv.${tenant}.rpc.${source}.tasks.${verb}`;
  const started = performance.now();
  for (;;) {
    const answer = await request(subject, JSON.stringify(params));
    if (answer !== undefined && !answer.error?.retryable) return answer;
    if (performance.now() - started > GIVE_UP_MS) throw new Error(`${subject} was never answered`);
    await pass(ASK_AGAIN_MS);
  }
}

/** One attempt; undefined when nobody answers. */
async function request(subject, body) {
  try {
    return (await nats.request(subject, body, { timeout: RESEND_MS })).json();
  } catch {
    // No service at the moment, or no server: whoever asks tries again.
    return undefined;
  }
}

const scripts = scriptsOf({
  send,
  ask,
  print,
  pass,
  name: `${seed}_${process.pid}`,
  isOver: () => isStopping,
})[mix];

async function work(agent, next) {
  const names = Object.keys(scripts);
  while (!isStopping) {
    await scripts[names[Math.floor(next() * names.length)]](agent);
    if (restMs > 0) await pass(restMs * 2 * next());
  }
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
