/**
 * 500 days of a quiet log, each with an abrupt end: snapshots are taken, the log is trimmed, every start
 * goes on from a snapshot, and nothing is lost (architecture, section 6).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeEntry,
  HEADER,
  intakeSubject,
  logStream,
  MemoryServer,
  type StoredMessage,
} from "@harmovela/bus";
import { createChecker, recordOf } from "@harmovela/check";
import {
  createCoordinator,
  describeState,
  type TaskState,
} from "@harmovela/delegation-coordinator";
import { domainOf, type Envelope } from "@harmovela/envelope";
import { Fold, type Host, instantPacking, openHost } from "@harmovela/host";
import { FakeClock, pass, SimRandom, settled } from "@harmovela/testkit";
import pino from "pino";

const DAYS = 500;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const RETENTION_DAYS = 30;
/** Beyond the retention: what a task still waits for must survive the trimming of its submission. */
const TIMEOUT_DAYS = 45;
const T0 = Date.UTC(2026, 0, 1, 9);
const TENANT = "acme";
const SOURCE = "agent:a";
const LOG = logStream("tasks");

interface Coordinator {
  host: Host;
  state(): TaskState;
  kill(): void;
}

class Years {
  readonly clock = new FakeClock();
  readonly server = new MemoryServer({
    clock: this.clock,
    now: () => T0 + Math.floor(this.clock.monotonic()),
  });
  readonly bus = this.server.connect({ name: "sender" });
  /** Everything that was ever stored, also what is trimmed by now. */
  readonly archive: StoredMessage[] = [];
  snapshotStarts = 0;
  #sent = 0;

  async start(day: number): Promise<Coordinator> {
    const clock = this.clock.openProcess();
    const connect = (name: string) => this.server.connect({ name, clock, uplink: clock });
    const [writer, answerer] = [connect("writer"), connect("answerer")];
    const definition = createCoordinator();
    const { decider } = definition;
    const { snapshots } = decider;
    assert.ok(snapshots);
    let state: TaskState | undefined;
    const opening = openHost({
      ...definition,
      decider: {
        ...decider,
        initial: () => {
          state = decider.initial();
          return state;
        },
        snapshots: {
          ...snapshots,
          adopt: (restored) => {
            this.snapshotStarts += 1;
            state = restored;
            snapshots.adopt?.(restored);
          },
        },
      },
      version: "1",
      instance: `day-${day}`,
      writer,
      answerer,
      clock,
      logger: pino({ level: "silent" }),
      replicas: 1,
      replyPrefix: () => "_INBOX.",
      retentionMs: RETENTION_DAYS * DAY_MS,
      packing: instantPacking,
      // Long, so that simulated hours are not made of renewals.
      leaseTtlMs: 2 * MINUTE_MS,
    });
    const host = await settled(this.clock, opening);
    await settled(this.clock, host.untilLeading());
    return {
      host,
      state: () => {
        assert.ok(state);
        return state;
      },
      kill: () => {
        clock.kill();
        for (const connection of [writer, answerer]) connection.disconnected("lost");
      },
    };
  }

  /** The verdict. */
  async send(type: string, task: string, payload: Envelope["payload"] = {}): Promise<Envelope> {
    this.#sent += 1;
    const envelope = {
      spec_version: "0.2",
      id: `evt_${this.#sent}`,
      type,
      source: SOURCE,
      task_id: task,
      created_at: new Date(T0 + this.clock.monotonic()).toISOString(),
      payload,
    };
    const subject = intakeSubject({ tenant: TENANT, domain: domainOf(type), source: SOURCE, type });
    const inbox = this.bus.newInbox();
    const verdict = new Promise<Envelope>((resolve) => {
      const subscription = this.bus.subscribe(inbox, ({ data }) => {
        subscription.close();
        resolve(JSON.parse(new TextDecoder().decode(data)) as Envelope);
      });
    });
    const data = new TextEncoder().encode(JSON.stringify(envelope));
    await settled(this.clock, this.bus.store(subject, { [HEADER.replyTo]: inbox }, data));
    return settled(this.clock, verdict);
  }

  readLog(): void {
    const stream = this.server.stream(LOG);
    for (let seq = this.archive.length + 1; seq <= (stream?.lastSeq ?? 0); seq += 1) {
      const message = stream?.get(seq);
      assert.ok(message, `entry ${seq} was trimmed before anybody saw it`);
      this.archive.push(message);
    }
  }
}

/** `lenient`: what was before the first of them is not known. */
function assertLegal(messages: readonly StoredMessage[], lenient: boolean): void {
  const checker = createChecker({ domain: "tasks", stream: LOG, settled: true, lenient });
  for (const message of messages) assert.deepEqual(checker.push(recordOf(message)), []);
  assert.deepEqual(checker.end(), []);
}

test(`${DAYS} days of a quiet log with an abrupt end each day lose nothing`, async (context) => {
  const years = new Years();
  const random = new SimRandom(7, 1);
  const submittedOn = new Map<string, number>();
  let mostStored = 0;
  for (let day = 0; day < DAYS; day += 1) {
    const coordinator = await years.start(day);
    const task = `task_${day}`;
    const timeout = { timeout_ms: TIMEOUT_DAYS * DAY_MS };
    assert.equal((await years.send("task.submitted", task, timeout)).type, "event.acknowledged");
    submittedOn.set(task, day);
    const short = `short_${day}`;
    for (const type of ["task.submitted", "task.started", "task.completed"]) {
      assert.equal((await years.send(type, short)).type, "event.acknowledged", `${type} ${day}`);
    }
    // Some days end before the hour of a snapshot, some in the midst of one, some long after.
    await pass(years.clock, random.whole(1, 150) * MINUTE_MS);
    years.readLog();
    const stream = years.server.stream(LOG);
    mostStored = Math.max(mostStored, stream?.state().messages ?? 0);
    coordinator.kill();
    await pass(years.clock, DAY_MS - (years.clock.monotonic() % DAY_MS));
  }
  const last = await years.start(DAYS);
  await pass(years.clock, 10 * MINUTE_MS);
  years.readLog();

  const { decider } = createCoordinator();
  const full = new Fold(decider);
  for (const message of years.archive) full.read(message);
  assert.deepEqual(describeState(last.state()), describeState(full.state));
  const expired = new Map<string, number>();
  for (const message of years.archive) {
    const entry = decodeEntry(message);
    if (entry?.kind !== "event" || entry.envelope.type !== "task.timed_out") continue;
    const task = String(entry.envelope.task_id);
    assert.ok(!expired.has(task), `${task} timed out twice`);
    expired.set(task, Math.floor((entry.at - T0) / DAY_MS));
  }
  for (const [task, day] of submittedOn) {
    const due = day + TIMEOUT_DAYS;
    if (due < DAYS) assert.equal(expired.get(task), due, task);
  }
  assertLegal(years.archive, false);
  assertLegal(years.archive.slice((years.server.stream(LOG)?.state().firstSeq ?? 1) - 1), true);
  const { firstSeq, messages } = years.server.stream(LOG)?.state() ?? { firstSeq: 0, messages: 0 };
  context.diagnostic(
    JSON.stringify({
      stored: years.archive.length,
      messages,
      firstSeq,
      mostStored,
      starts: years.snapshotStarts,
    }),
  );
  assert.ok(years.snapshotStarts > DAYS / 2, "starts went on from snapshots");
  // A day logs about seven entries; snapshots may be some days apart.
  assert.ok(mostStored < 10 * (RETENTION_DAYS + 15), `${mostStored} entries at most`);
});
