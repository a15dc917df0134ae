/** A bus that falls silent, refuses or ends at the worst moment: the service goes on, or stops and says why. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type AppendFailure,
  type Bus,
  intakeStream,
  intakeStreamSpec,
  logStream,
} from "@harmovela/bus";
import { HarmovelaError } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { altered, hurriedClock } from "./altered.ts";
import { createCounterDecider } from "./counter-decider.ts";
import {
  ask,
  envelope,
  errorOf,
  eventsOf,
  eventually,
  openCounter,
  openObserver,
  openSender,
  readLog,
} from "./harness.ts";

const silence = (): HarmovelaError => new HarmovelaError("timeout", "no answer in time");

/** A bus whose first call of one member is not answered. */
function silentOnce(member: "streamState" | "read"): (bus: Bus) => Bus {
  let isFirst = true;
  const isSilent = (): boolean => {
    const isSilentNow = isFirst;
    isFirst = false;
    return isSilentNow;
  };
  return (bus) =>
    altered<Bus>(
      bus,
      member === "read"
        ? { read: (...of) => (isSilent() ? Promise.reject(silence()) : bus.read(...of)) }
        : {
            streamState: (...of) =>
              isSilent() ? Promise.reject(silence()) : bus.streamState(...of),
          },
    );
}

describe("at the take-over", () => {
  for (const member of ["streamState", "read"] as const) {
    test(`one unanswered ${member} does not stop the service`, async () => {
      await using server = await startNatsServer();
      await using counter = await openCounter(server.url, { around: silentOnce(member) });
      await counter.host.untilLeading();
      await using sender = await openSender(server.url);
      assert.equal((await sender.send(envelope("task.progress"))).type, "event.acknowledged");
    });
  }

  test("the connection is lost between the epoch's acknowledgement and its read", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let fail: (() => void) | undefined;
    let isSlow = false;
    const around = (bus: Bus): Bus => {
      let isFirst = true;
      return altered(bus, {
        openAppender: (options) => {
          const appender = bus.openAppender(options);
          if (isFirst) {
            isFirst = false;
            fail = () => {
              const seq = appender.acked + 1;
              const failure = { reason: "unknown", seq, apiCode: 0, message: "lost" } as const;
              void appender.close().then(() => options.onFailure(failure));
            };
          }
          return appender;
        },
        read: async (...of) => {
          const message = await bus.read(...of);
          isSlow = fail !== undefined;
          fail?.();
          fail = undefined;
          return message;
        },
        streamState: async (stream) => {
          const state = await bus.streamState(stream);
          // The recovery takes longer than the take-over.
          if (isSlow && stream === logStream("tasks")) {
            isSlow = false;
            for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
          }
          return state;
        },
      });
    };
    await using counter = await openCounter(server.url, { around });
    const verdict = sender.send(envelope("task.progress"));
    await counter.host.untilLeading();
    assert.equal((await verdict).type, "event.acknowledged");
    assert.equal(counter.host.status().counters.recoveries, 1);
  });

  test("close() in the midst of it ends the service: it does not lead after all", async () => {
    await using server = await startNatsServer();
    let arrive = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const around = (bus: Bus): Bus =>
      altered<Bus>(bus, {
        streamState: async (stream) => {
          if (stream === intakeStream("tasks")) {
            arrive();
            await opened;
          }
          return bus.streamState(stream);
        },
      });
    const counter = await openCounter(server.url, { around });
    await arrived;
    const closed = counter.host.close().then(() => "closed");
    open();
    const late = new Promise((resolve) => setTimeout(resolve, 20_000, "not closed").unref());
    const outcome = await Promise.race([closed, late]);
    // A host that leads on would hold up this process for ever.
    if (outcome !== "closed") setTimeout(() => process.exit(1), 1_000);
    assert.equal(outcome, "closed");
    assert.equal(counter.host.status().role, "stopped");
    await counter[Symbol.asyncDispose]();
  });

  test("close() ends a service whose epoch cannot be stored", async () => {
    await using server = await startNatsServer();
    const around = (bus: Bus): Bus =>
      altered(bus, {
        openAppender: (options) => {
          const appender = bus.openAppender(options);
          let last = options.last;
          const message = "maximum bytes exceeded";
          return altered(appender, {
            append: () => {
              last += 1;
              const refused: AppendFailure = {
                reason: "refused",
                seq: last,
                apiCode: 10077,
                message,
              };
              setImmediate(() => options.onFailure(refused));
              return last;
            },
            get last() {
              return last;
            },
          });
        },
      });
    await using counter = await openCounter(server.url, { around, clock: hurriedClock });
    await eventually(() =>
      (counter.host.status().counters.recoveries ?? 0) >= 3 ? true : undefined,
    );
    await counter.host.close();
    await counter.host.done;
    assert.equal(counter.host.status().role, "stopped");
    assert.equal(counter.host.status().failure, undefined);
    await assert.rejects(counter.host.untilLeading(), { code: "internal_error" });
  });
});

describe("as leader", () => {
  test("an obligation that its entry does not discharge is written once; envelopes are judged", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const base = createCounterDecider();
    await using counter = await openCounter(server.url, {
      decider: {
        ...base,
        evolve: (state, entry) => {
          if (entry.kind === "event" && entry.envelope.type === "task.timed_out") return;
          base.evolve(state, entry);
        },
      },
    });
    await counter.host.untilLeading();
    await sender.send(envelope("task.submitted", { task_id: "t", payload: { timeout_ms: 30 } }));
    await eventually(() => (counter.host.status().alarms.length > 0 ? true : undefined));
    for (let count = 0; count < 50; count += 1) {
      assert.equal((await sender.send(envelope("task.progress"))).type, "event.acknowledged");
    }
    const log = await readLog(sender.bus);
    assert.equal(eventsOf(log).filter((line) => line === "task.timed_out t").length, 1);
    assert.equal(log.filter(({ kind }) => kind === "obligation_failed").length, 1);
    assert.match(counter.host.status().alarms[0]?.alarm ?? "", /owed again right after its entry/);
  });

  test("a request that nobody stores is tried now and then, and stored when somebody does", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using tasks = await openCounter(server.url);
      await tasks.host.untilLeading();
      await sender.send(envelope("task.completed", { task_id: "t" }));
      await eventually(() => (tasks.host.status().isSettled ? true : undefined));
    }
    await sender.bus.nats.request("$JS.API.STREAM.DELETE.HV_IN_TASKS", "");
    await using observer = await openObserver(server.url);
    await observer.host.untilLeading();
    const requests = (): number => observer.host.status().counters.requests ?? 0;
    await eventually(() => (requests() >= 3 ? true : undefined));
    for (let count = 0; count < 100; count += 1) {
      const fact = envelope("memory.fact.added", { payload: { fact_id: `f${count}`, value: 1 } });
      assert.equal((await sender.send(fact)).type, "event.acknowledged");
    }
    // Three are owed; each was tried once, or a few times where these hundred took seconds.
    assert.ok(requests() < 30, `${requests()} tries`);
    await sender.bus.provision(intakeStreamSpec("tasks", { replicas: 1 }));
    await eventually(async () => {
      const state = await sender.bus.streamState("HV_IN_TASKS");
      return state?.lastSeq === 3 ? true : undefined;
    });
  });

  test("O1 a full log is tried less and less; when there is room everything is judged once", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const tries: number[] = [];
    const around = (bus: Bus): Bus =>
      altered(bus, {
        openAppender: (options) => {
          tries.push(performance.now());
          return bus.openAppender(options);
        },
      });
    await using counter = await openCounter(server.url, { around });
    await counter.host.untilLeading();
    const limit = async (bytes: number): Promise<void> => {
      const info = await sender.bus.nats.request("$JS.API.STREAM.INFO.HV_LOG_TASKS", "");
      const { config } = info.json<{ config: object }>();
      const changed = JSON.stringify({ ...config, max_bytes: bytes });
      const answer = await sender.bus.nats.request("$JS.API.STREAM.UPDATE.HV_LOG_TASKS", changed);
      assert.equal(answer.json<{ error?: object }>().error, undefined);
    };
    await limit(200_000);
    const sent = Array.from({ length: 100 }, () =>
      envelope("task.progress", { payload: { message: "x".repeat(10_000) } }),
    );
    for (const one of sent) await sender.post(one);
    await eventually(() => (tries.length >= 6 ? true : undefined));
    // 200 ms, perhaps once more when the first try found something stored, then twice as long each time.
    const pause = (tries[5] ?? 0) - (tries[4] ?? 0);
    assert.ok(pause > 700, `the fifth try came ${pause} ms after the fourth`);
    assert.match(counter.host.status().alarms[0]?.alarm ?? "", /the log refuses appends/);
    assert.ok((await ask(sender, "status")).status !== undefined);
    await limit(-1);
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    const ids = (await readLog(sender.bus)).flatMap((entry) =>
      entry.kind === "event" ? [entry.envelope.id] : [],
    );
    assert.deepEqual(
      ids,
      sent.map(({ id }) => id),
    );
  });

  test("an observed log that cannot be read: envelopes are refused as retryable until it can", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let isSilent = false;
    let questions = 0;
    const around = (bus: Bus): Bus =>
      altered(bus, {
        streamState: (stream) => {
          if (!isSilent || stream !== logStream("tasks")) return bus.streamState(stream);
          questions += 1;
          return Promise.reject(silence());
        },
      });
    await using observer = await openObserver(server.url, { around, clock: hurriedClock });
    await observer.host.untilLeading();
    const fact = envelope("memory.fact.added", { payload: { fact_id: "f", value: 1 } });
    isSilent = true;
    const refused = await sender.send(fact);
    assert.equal(errorOf(refused).code, "internal_error");
    assert.equal(errorOf(refused).retryable, true);
    assert.ok(questions >= 10, `it was asked ${questions} times before anything was refused`);
    questions = 0;
    assert.equal(errorOf(await sender.send(fact)).code, "internal_error");
    assert.ok(
      questions < 10,
      `asked ${questions} times: while silence goes on nobody waits for its end`,
    );
    isSilent = false;
    assert.equal((await sender.send(fact)).type, "event.acknowledged");
  });

  test("an observed log that answers again after a moment: nothing is refused", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let failing = 0;
    const around = (bus: Bus): Bus =>
      altered(bus, {
        streamState: (stream) => {
          if (failing === 0 || stream !== logStream("tasks")) return bus.streamState(stream);
          failing -= 1;
          return Promise.reject(silence());
        },
      });
    await using observer = await openObserver(server.url, { around });
    await observer.host.untilLeading();
    for (const name of ["f", "g"]) {
      failing = 3;
      const fact = envelope("memory.fact.added", { payload: { fact_id: name, value: 1 } });
      assert.equal((await sender.send(fact)).type, "event.acknowledged");
      assert.equal(failing, 0);
    }
  });
});
