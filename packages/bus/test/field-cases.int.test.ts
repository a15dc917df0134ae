/** Failures that users of NATS reported, by the names of the reports; what the bus makes of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AppendFailure,
  connectBus,
  intakeStreamSpec,
  type JetStreamBus,
  logStreamSpec,
  logSubject,
  systemClock,
} from "@harmovela/bus";
import type { HarmovelaError } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { LeaseBucket } from "../src/jetstream/lease-bucket.ts";
import { toWireHeaders } from "../src/jetstream/wire-headers.ts";
import { LeaseKeeper, type LeaseStore } from "../src/lease-keeper.ts";

const DEADLINE_MS = 30_000;
const spec = logStreamSpec("tasks");
const subject = logSubject({ tenant: "acme", domain: "tasks", source: "a", type: "task.created" });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (data: unknown): string =>
  data instanceof Uint8Array ? new TextDecoder().decode(data) : String(data ?? "");
/** What the client was given as headers, as it goes out. */
const headersOf = (options: { headers?: object } | undefined): string =>
  textOf((options?.headers as { encode?: () => Uint8Array } | undefined)?.encode?.());
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!isSo()) {
    assert.ok(performance.now() < deadline, "it did not happen in time");
    await pause(10);
  }
}

/** Answers whatever is published on a subject that no stream takes. */
function answering(bus: JetStreamBus, on: string, answer: object): { close(): void } {
  return bus.subscribe(on, ({ reply }) => bus.publish(reply, {}, bytes(JSON.stringify(answer))));
}

test("M9 M11 an answer that calls a message a duplicate is believed when the message is there to be read", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const { name: stream } = await bus.provision(spec);
  await bus.store(subject, {}, bytes("stored"));
  const ask = async (answer: object): Promise<{ seq: number } | HarmovelaError> => {
    const answerer = answering(bus, "elsewhere", { stream, duplicate: true, ...answer });
    await bus.flush();
    const outcome = bus.store("elsewhere", {}, bytes("stored"));
    return outcome.catch((error: HarmovelaError) => error).finally(() => answerer.close());
  };
  assert.deepEqual(await ask({ seq: 1 }), { stream, seq: 1 });
  await bus.store(subject, {}, bytes("something else"));
  for (const answer of [{ seq: 0 }, {}, { seq: 2 }, { seq: 99 }, { seq: 1, stream: "NONE" }]) {
    const refusal = await ask(answer);
    const code = "code" in refusal && refusal.code;
    assert.equal(code, "effect_outcome_uncertain", JSON.stringify(answer));
  }
});

test("M11 an append that the server drops as a duplicate is not reported as stored", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  bus.newInbox = () => "_INBOX.known";
  const acked: number[] = [];
  const failed = new Promise<AppendFailure>((resolve, reject) => {
    setTimeout(() => reject(new Error("it did not fail")), DEADLINE_MS).unref();
    // What somebody else stored under the id of the append, within the server's window.
    bus.nats.publish(subject, "taken", { headers: toWireHeaders({ "Nats-Msg-Id": "known.2" }) });
    const appender = bus.openAppender({
      stream: spec.name,
      last: 1,
      onAcked: (seq) => acked.push(seq),
      onFailure: resolve,
    });
    appender.append(subject, {}, bytes("mine"));
  });
  assert.equal((await failed).reason, "unknown");
  assert.deepEqual(acked, []);
  assert.equal((await bus.streamState(spec.name))?.lastSeq, 1);
});

/** A store whose reads flip between what is and nothing. */
function flipping(store: LeaseStore): LeaseStore {
  let reads = 0;
  return {
    put: (...of) => store.put(...of),
    giveUp: (...of) => store.giveUp(...of),
    last: (key) => {
      reads += 1;
      return reads % 2 === 1 ? Promise.resolve(undefined) : store.last(key);
    },
  };
}

test("M13 reads that flip between a lease and none make no second holder, and cost the first none", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const ttlMs = 3_000;
  const log: string[] = [];
  const open = (holder: string): LeaseKeeper =>
    new LeaseKeeper(
      {
        clock: systemClock,
        openStore: async (timeoutMs) =>
          flipping(await LeaseBucket.open(bus.nats, { ttlMs, replicas: 1, timeoutMs })),
        jitter: () => 0,
        id: holder,
      },
      {
        key: "tasks",
        holder,
        ttlMs,
        onAcquired: () => log.push(`${holder} has it`),
        onLost: () => log.push(`${holder} lost it`),
      },
    );
  const first = open("first");
  await until(() => first.isHeld);
  const second = open("second");
  // Two renewals, and a dozen attempts of the other.
  await pause(2_500);
  assert.deepEqual(log, ["first has it"]);
  await first.close();
  await until(() => second.isHeld);
  assert.deepEqual(log, ["first has it", "second has it"]);
  await second.close();
});

/** What an old server drops without a word; none of it may be asked for. */
const NEWER_THAN_DEBIAN =
  /allow_msg_ttl|Nats-TTL|filter_subjects|Nats-Batch|allow_atomic|Nats-Schedule|allow_msg_schedules|"metadata"|subject_transform|compression|first_seq|consumer_limits/;

test("M17 nothing is asked for that an old server drops without a word", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const sent: string[] = [];
  const { publish, request } = bus.nats;
  bus.nats.publish = (to, data, options) => {
    sent.push(`${to} ${textOf(data)} ${headersOf(options)}`);
    publish.call(bus.nats, to, data, options);
  };
  bus.nats.request = (to, data, options) => {
    sent.push(`${to} ${textOf(data)} ${headersOf(options)}`);
    return request.call(bus.nats, to, data, options);
  };
  await bus.provision(intakeStreamSpec("tasks"));
  await bus.provision(spec);
  const lease = bus.openLease({
    key: "tasks",
    holder: "me",
    ttlMs: 3_000,
    onAcquired: () => {},
    onLost: () => {},
  });
  const reader = bus.openReader(spec.name, {
    after: 0,
    filter: "hv.acme.log.tasks.>",
    onReady: () => {},
  });
  const appender = bus.openAppender({
    stream: spec.name,
    last: 0,
    onAcked: () => {},
    onFailure: (failure) => assert.fail(failure.message),
  });
  appender.append(subject, {}, bytes("one"));
  await until(() => lease.isHeld && reader.buffered > 0);
  const seen = sent.join("\n");
  for (const what of [
    /STREAM.CREATE.HV_LOG_TASKS .*"republish"/,
    /CONSUMER.CREATE.*"filter_subject"/,
  ]) {
    assert.match(seen, what);
  }
  for (const what of [/STREAM.CREATE.KV_/, /Nats-Expected-Last-Sequence/]) assert.match(seen, what);
  for (const message of sent) assert.doesNotMatch(message, NEWER_THAN_DEBIAN);
  await Promise.all([lease.close(), reader.close(), appender.close()]);
});

for (const dropped of ["republish", "deny_delete", "discard"]) {
  test(`M17 a server that drops ${dropped} without a word is refused at the start, which says so`, async () => {
    await using server = await startNatsServer();
    await using bus = await connectBus({ servers: server.url, name: "test" });
    const { request } = bus.nats;
    bus.nats.request = (to, data, options) => {
      if (!to.startsWith("$JS.API.STREAM.CREATE."))
        return request.call(bus.nats, to, data, options);
      const { [dropped]: _, ...known } = JSON.parse(textOf(data)) as Record<string, unknown>;
      return request.call(bus.nats, to, JSON.stringify(known), options);
    };
    await assert.rejects(bus.provision(spec), (error: HarmovelaError) => {
      assert.equal(error.code, "stream_mismatch");
      assert.match(error.message, new RegExp(`HV_LOG_TASKS is not as asked for: ${dropped}`));
      return true;
    });
  });
}
