/** Failures that users of similar systems reported, by the names of the reports; here those of tasks, against the real coordinator. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Appender, AppendFailure, Bus } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Envelope, LogEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { altered } from "../../packages/host/test/altered.ts";
import {
  ask,
  type Counter,
  envelope,
  errorOf,
  eventsOf,
  eventually,
  openHosted,
  openSender,
  readLog,
  type Sender,
} from "../../packages/host/test/harness.ts";

async function coordinator(
  { url }: NatsServer,
  around: (bus: Bus) => Bus = (bus) => bus,
): Promise<Counter> {
  const hosted = await openHosted(url, { ...createCoordinator(), observes: [], around });
  await hosted.host.untilLeading();
  return hosted;
}

interface Fields {
  by?: string;
  parent?: string;
  payload?: JsonObject;
  target?: string;
}

function task(name: string, id: string, { by = "agent:a", parent, payload, target }: Fields = {}) {
  return envelope(`task.${name}`, {
    source: by,
    task_id: id,
    payload: { task_id: id, ...payload },
    ...(parent === undefined ? {} : { parent_task_id: parent }),
    ...(target === undefined ? {} : { target }),
  });
}

/** Publishes in order; each must be taken. */
async function given(sender: Sender, ...envelopes: Envelope[]): Promise<void> {
  for (const one of envelopes) {
    const verdict = await sender.send(one);
    assert.equal(verdict.type, "event.acknowledged", JSON.stringify(verdict.payload));
  }
}

async function stateOf(sender: Sender, id: string): Promise<unknown> {
  const { result } = await ask(sender, "task", { task_id: id });
  return (result as { state?: unknown } | undefined)?.state;
}

/** Loses appends whose text matches, `times` times; whoever appends is told that nobody answered. */
class LossyLog {
  lost = 0;
  readonly #what: RegExp;
  readonly #times: number;

  constructor(what: RegExp, times: number) {
    this.#what = what;
    this.#times = times;
  }

  around = (bus: Bus): Bus =>
    altered(bus, {
      openAppender: (options) => {
        const appender = bus.openAppender(options);
        /** Appends of this chain that were taken and not sent. */
        let held = 0;
        const fail = (): void => {
          const failure: AppendFailure = {
            reason: "unknown",
            seq: appender.acked + 1,
            apiCode: 0,
            message: "nobody answered",
          };
          void appender.close().then(() => options.onFailure(failure));
        };
        const append: Appender["append"] = (subject, headers, data) => {
          const isLost = this.lost < this.#times && this.#what.test(new TextDecoder().decode(data));
          if (held === 0 && !isLost) return appender.append(subject, headers, data);
          held += 1;
          if (held === 1) {
            this.lost += 1;
            setImmediate(fail);
          }
          return appender.last + held;
        };
        return altered(appender, {
          append,
          get last() {
            return appender.last + held;
          },
          get inFlight() {
            return appender.inFlight + held;
          },
        });
      },
    });
}

/** A leader that is stopped right before it writes, and goes on when it is told to. */
class Pause {
  isOn = false;
  readonly #waiting: (() => void)[] = [];

  get held(): number {
    return this.#waiting.length;
  }

  release(): void {
    this.isOn = false;
    for (const go of this.#waiting.splice(0)) go();
  }

  /** It takes its lease once and never hears of it again, as one that is stopped does. */
  around = (bus: Bus): Bus =>
    altered(bus, {
      openLease: (options) => {
        queueMicrotask(options.onAcquired);
        return { isHeld: true, close: async () => {} };
      },
      openAppender: (options) => {
        const appender = bus.openAppender(options);
        const held = (): number => this.held;
        const append: Appender["append"] = (...message) => {
          if (!this.isOn) return appender.append(...message);
          const seq = appender.last + this.held + 1;
          this.#waiting.push(() => appender.append(...message));
          return seq;
        };
        return altered(appender, {
          append,
          get last() {
            return appender.last + held();
          },
          get inFlight() {
            return appender.inFlight + held();
          },
        });
      },
    });
}

const begunIn = (log: LogEntry[]): string[] =>
  log.flatMap((entry) => (entry.kind === "begun" ? [entry.plan.id] : []));

describe("cancellation", () => {
  test("A7 one end of five cannot be written three times: the intent stands once, all end, the parent last", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const lossy = new LossyLog(/"type":"task.cancelled".*"task_id":"c3"/, 3);
    await using hosted = await coordinator(server, lossy.around);
    const children = [1, 2, 3, 4, 5].map((n) => `c${n}`);
    await given(sender, task("submitted", "p"), task("started", "p"));
    for (const child of children) {
      const by = `agent:${child}`;
      await given(sender, task("submitted", child, { parent: "p", target: by }));
      await given(sender, task("started", child, { by }));
    }
    const cancel = task("cancelled", "p");
    await given(sender, cancel);
    await eventually(async () => ((await stateOf(sender, "p")) === "cancelled" ? true : undefined));
    assert.equal(lossy.lost, 3);
    assert.ok((hosted.host.status().counters.recoveries ?? 0) >= 3);
    const log = await readLog(sender.bus);
    assert.deepEqual(begunIn(log), [cancel.id]);
    const ended = eventsOf(log).filter((line) => line.startsWith("task.cancelled"));
    assert.deepEqual(ended.at(-1), "task.cancelled p");
    assert.deepEqual(
      ended.slice(0, -1).sort(),
      children.map((child) => `task.cancelled ${child}`),
    );
  });

  test("A13 a runner that goes on is refused and counted, its parent is free, an operator is told once", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using hosted = await coordinator(server);
    const by = "agent:deaf";
    await given(
      sender,
      task("submitted", "p"),
      task("started", "p"),
      task("submitted", "c", { parent: "p", target: by }),
      task("started", "c", { by }),
      task("cancel.requested", "c", { target: by, payload: { grace_period_ms: 200 } }),
      // It has heard of it, and goes on.
      task("progress", "c", { by, payload: { message: "stopping" } }),
    );
    await eventually(async () => ((await stateOf(sender, "c")) === "cancelled" ? true : undefined));
    for (let count = 0; count < 10; count += 1) {
      const error = errorOf(await sender.send(task("progress", "c", { by })));
      assert.equal(error.code, "task_error");
      assert.equal(error.details?.state, "cancelled");
    }
    await given(sender, task("completed", "p"));
    const { status = {} } = await ask(sender, "status");
    assert.equal((status.counters as Record<string, number>).late, 10);
    assert.deepEqual(status.alarms, [
      { alarm: "agent:deaf of acme goes on working at what is over or stopped", count: 1 },
    ]);
    assert.equal(hosted.host.status().counters.alarms, 1);
  });
});

describe("an end that was", () => {
  test("C3 is not undone by an event that speaks of another state", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using _hosted = await coordinator(server);
    const won = task("completed", "c");
    await given(sender, task("submitted", "c"), task("started", "c"), won);
    // Snapshots of other protocols are no events of this one; its own conflict with the end.
    const running = { state: "running", status: { state: "running" } };
    const snapshots = ["created", "updated"].map((name) => task(name, "c", { payload: running }));
    const own = ["submitted", "accepted", "started", "progress"].map((name) => task(name, "c"));
    for (const snapshot of snapshots) {
      assert.equal(errorOf(await sender.send(snapshot)).code, "unknown_event_type");
    }
    for (const event of own) {
      const error = errorOf(await sender.send(event));
      assert.equal(error.code, "task_error");
      assert.match(JSON.stringify(error.details?.winner), new RegExp(won.id));
    }
    const { result } = await ask(sender, "task", { task_id: "c" });
    const { state, winner } = result as { state: string; winner: { event_id: string } };
    assert.deepEqual([state, winner.event_id], ["completed", won.id]);
    // Each refusal is kept, and names what was refused.
    const refused = (await readLog(sender.bus)).flatMap((entry) =>
      entry.kind === "event" && entry.envelope.type === "event.rejected"
        ? [entry.envelope.causation_id]
        : [],
    );
    assert.deepEqual(
      refused,
      [...snapshots, ...own].map(({ id }) => id),
    );
  });

  test("C5 is not overwritten by a leader that was stopped between reading and writing", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const pause = new Pause();
    await using stopped = await coordinator(server, pause.around);
    await given(sender, task("submitted", "c"), task("started", "c"));
    pause.isOn = true;
    const request = task("cancel.requested", "c", { payload: { grace_period_ms: 60_000 } });
    const asked = sender.send(request);
    await eventually(() => (pause.held === 1 ? true : undefined));
    // Its successor takes the same request, and then the completion.
    await using _other = await coordinator(server);
    assert.equal((await asked).type, "event.acknowledged");
    const won = task("completed", "c");
    await given(sender, won);
    const before = (await readLog(sender.bus)).length;
    pause.release();
    await eventually(() => (stopped.host.status().counters.refolds === 0 ? undefined : true));
    const again = errorOf(await sender.send(task("cancel.requested", "c")));
    assert.deepEqual(again.details?.winner, {
      event_id: won.id,
      type: "task.completed",
      seq: before,
    });
    const log = eventsOf(await readLog(sender.bus));
    assert.equal(log.filter((line) => line === "task.cancel.requested c").length, 1);
    assert.equal(log.filter((line) => line === "task.completed c").length, 1);
    assert.equal(await stateOf(sender, "c"), "completed");
  });
});
