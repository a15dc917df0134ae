/**
 * P6 of the architecture: any bytes on any intake, read or header get a verdict or a counted drop;
 * nothing crashes, grows without bound or blocks others. HARMOVELA_P6_SEED repeats a run.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  type CoreMessage,
  connectBus,
  controlSubject,
  intakeStream,
  type JetStreamBus,
  logStream,
  type StoredMessage,
} from "@harmovela/bus";
import { checkLog, type Report, recordOf } from "@harmovela/check";
import type { HostStatus } from "@harmovela/host";
import { SimRandom, startNatsServer } from "@harmovela/testkit";
import { anyType, bodyFor, bytesOf, envelopeOf, laborious, large } from "./hostile/bodies.ts";
import { CoordinatorProcess } from "./hostile/coordinator.ts";
import { allTricks, ELSEWHERE } from "./hostile/headers.ts";
import { HonestAgent } from "./hostile/honest.ts";
import { isAnswered, Ledger, VERDICTS } from "./hostile/ledger.ts";
import { RawClient, type RawMessage } from "./hostile/raw-client.ts";
import { type Question, question } from "./hostile/reads.ts";
import { CANONICAL, OTHERS, UNROUTABLE } from "./hostile/subjects.ts";

const ROUNDS = 40;
const PER_ROUND = 30;
const LARGE_PER_ROUND = 12;
const READS_PER_ROUND = 20;
/** Objects that the service may hold; what is sent is a multiple of it. */
const HEAP_MB = 128;
/** All that it may hold: code, objects, and the bytes of what is read ahead. */
const RESIDENT_MAX = 350 * 1024 * 1024;
const END_MS = 120_000;
/** A read waits five seconds for its cursor. */
const ANSWERS_MS = 20_000;
const ANSWERS = "_INBOX.p6.r";

const seed = Number(process.env.HARMOVELA_P6_SEED ?? 1 + Math.floor(Math.random() * 1e9));

test(`a coordinator under attack (HARMOVELA_P6_SEED=${seed})`, async (t) => {
  await using server = await startNatsServer();
  const keys = mkdtempSync(join(tmpdir(), "harmovela-p6-"));
  t.after(() => rmSync(keys, { recursive: true, force: true }));
  await using coordinator = await CoordinatorProcess.start(server.url, {
    heapMb: HEAP_MB,
    tokenKeyFile: join(keys, "keys.json"),
  });
  await using bus = await connectBus({ servers: server.url, name: "witness" });
  const inbox = new Inbox(bus);
  const before = await coordinator.until("it is ready", ({ isReady }) => isReady, END_MS);
  await using honest = await HonestAgent.start(server.url);
  const attack = new Attack(server.port, new SimRandom(seed), coordinator, inbox);
  await attack.run();
  await honest.stop();

  const intake = await readAll(bus, intakeStream("tasks"));
  const last = intake.at(-1)?.seq ?? 0;
  const after = await coordinator.until(
    "all is judged",
    (status) => status.intake === last && status.isSettled,
    END_MS,
  );
  await inbox.settle(attack, intake, ANSWERS_MS);
  t.diagnostic(
    `${server.version}: ${attack.ledger.sent.length} messages (${attack.bytes >> 20} MiB) sent, ` +
      `${last} stored, ${attack.questions.length} reads; ${honest.tasks} honest tasks, slowest verdict ` +
      `${honest.slowestMs.toFixed(0)} ms; at most ${coordinator.residentMax >> 20} MiB held; ` +
      `${JSON.stringify(after.counters)}`,
  );

  assert.ok(coordinator.isRunning);
  assertSameLeader(before, after);
  assert.deepEqual(after.alarms, [], "nothing that was sent made the service stumble");
  assert.ok(coordinator.residentMax < RESIDENT_MAX, `${coordinator.residentMax >> 20} MiB`);
  assert.ok((after.counters.begun ?? 0) > 0, "cascades ran meanwhile");
  assert.ok(honest.tasks >= 10, `${honest.tasks} honest tasks`);
  assertOnlySent(intake);
  assertVerdicts(attack.ledger, intake, inbox);
  assertReads(attack.questions, inbox);
  assertCounts(attack, intake, after, inbox);
  await assertLog(bus, after);
  assert.ok(attack.bytes > 2 * HEAP_MB * 1024 * 1024);
});

/** Everything that is sent, and what it was. */
class Attack {
  readonly ledger = new Ledger();
  readonly questions: Question[] = [];
  bytes = 0;
  readonly #client: RawClient;
  readonly #random: SimRandom;
  readonly #coordinator: CoordinatorProcess;
  readonly #inbox: Inbox;

  constructor(port: number, random: SimRandom, coordinator: CoordinatorProcess, inbox: Inbox) {
    this.#inbox = inbox;
    this.#client = new RawClient(port);
    this.#random = random;
    this.#coordinator = coordinator;
  }

  async run(): Promise<void> {
    using _client = this.#client;
    for (const messages of [...this.#everyHeader(), this.#everyReply(), ...this.#everySubject()]) {
      await this.#send(messages);
    }
    await this.#labour();
    for (let round = 0; round < ROUNDS; round += 1) {
      await this.#send(Array.from({ length: PER_ROUND }, () => this.#anything()));
      await this.#send(Array.from({ length: LARGE_PER_ROUND }, () => this.#anyLarge()));
      await this.#send(Array.from({ length: READS_PER_ROUND }, () => this.#anyRead()));
      await this.#send(Array.from({ length: 5 }, () => this.#anyHeartbeat()));
      this.#coordinator.weigh();
    }
  }

  async #send(messages: RawMessage[]): Promise<void> {
    for (const { body, head = "" } of messages) this.bytes += body.length + head.length;
    await this.#client.send(messages);
  }

  /** Each by itself, with a body and without; behind each a plain one, which must not suffer from it. */
  #everyHeader(): RawMessage[][] {
    const { ledger } = this;
    const subject = "hv.acme.in.tasks.agent:a.task.submitted";
    const body = () => bytesOf(envelopeOf("task.submitted"));
    return allTricks().map((trick) => [
      ledger.asked(subject, true, body(), trick),
      ledger.asked(subject, true, new Uint8Array(), trick),
      ledger.asked(subject, true, body()),
    ]);
  }

  #everyReply(): RawMessage[] {
    const subject = "hv.acme.in.tasks.agent:a.task.progress";
    return ELSEWHERE.flatMap((reply) => [
      this.ledger.misled(subject, bytesOf(envelopeOf("task.progress")), reply),
      this.ledger.misled(subject, new Uint8Array([0xff]), reply),
    ]);
  }

  /** One connection for each: the server ends those that break its own rules. */
  #everySubject(): RawMessage[][] {
    const body = () => bytesOf(envelopeOf("task.submitted"));
    return [
      ...CANONICAL.map((subject) => [this.ledger.asked(subject, true, body())]),
      ...[...OTHERS, ...UNROUTABLE].map((subject) => [this.ledger.asked(subject, false, body())]),
    ];
  }

  /** One at a time: what it costs must not add up to a pause. */
  async #labour(): Promise<void> {
    for (const type of ["task.submitted", "task.completed", "agent.message.sent"]) {
      for (const body of laborious(type)) {
        const number = this.ledger.sent.length;
        await this.#send([this.ledger.asked(`hv.acme.in.tasks.agent:a.${type}`, true, body)]);
        await this.#inbox.until(`${VERDICTS}.${number}`);
      }
    }
  }

  #anyLarge(): RawMessage {
    const type = anyType(this.#random);
    const subject = `hv.acme.in.tasks.agent:a.${type}`;
    return this.ledger.asked(subject, true, large(type, this.#random));
  }

  #anything(): RawMessage {
    const random = this.#random;
    const trick = random.chance(0.3) ? random.pick(allTricks()) : undefined;
    const type = anyType(random);
    const body = bodyFor(type, random);
    if (random.chance(0.05))
      return this.ledger.asked(random.pick(OTHERS) ?? "", false, body, trick);
    const subject = random.chance(0.1)
      ? (random.pick(CANONICAL) ?? "")
      : `hv.${random.pick(["acme", "other"])}.in.tasks.agent:a.${type}`;
    return this.ledger.any(subject, body, trick ?? { status: "", lines: "" }, random);
  }

  #anyRead(): RawMessage {
    const asked = question(this.#random);
    const number = this.questions.push(asked) - 1;
    const { subject, body, reply = `${ANSWERS}.${number}` } = asked;
    return { subject, body, ...(reply === "" ? {} : { reply }) };
  }

  #anyHeartbeat(): RawMessage {
    const random = this.#random;
    const tenant = random.pick(["acme", "%FF", "-", "\xff"]);
    const source = random.pick(["agent:a", "*", "-", "x".repeat(1_000)]);
    return {
      subject: `hv.${tenant}.live.${source}.session.heartbeat`,
      body: bodyFor("session.heartbeat", random),
    };
  }
}

/** What arrived at our inboxes, by subject. */
class Inbox {
  readonly received = new Map<string, unknown[]>();

  constructor(bus: JetStreamBus) {
    bus.subscribe("_INBOX.p6.>", ({ subject, data }: CoreMessage) => {
      const answer: unknown = JSON.parse(new TextDecoder().decode(data));
      this.received.set(subject, [...(this.received.get(subject) ?? []), answer]);
    });
  }

  at(subject: string): unknown[] {
    return this.received.get(subject) ?? [];
  }

  async until(subject: string): Promise<void> {
    const until = performance.now() + ANSWERS_MS;
    while (!this.received.has(subject) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Waits for what must come; what does not is reported one by one afterwards. */
  async settle({ ledger, questions }: Attack, intake: StoredMessage[], ms: number): Promise<void> {
    const wanted = [
      ...intake
        .map(numberOf)
        .filter((number) => mustAnswer(ledger, number))
        .map((number) => `${VERDICTS}.${number}`),
      ...questions.flatMap(({ fate }, number) =>
        fate === "answered" ? [`${ANSWERS}.${number}`] : [],
      ),
    ];
    const until = performance.now() + ms;
    while (wanted.some((subject) => !this.received.has(subject)) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Every message of a stream. */
async function readAll(bus: JetStreamBus, stream: string): Promise<StoredMessage[]> {
  const last = (await bus.streamState(stream))?.lastSeq ?? 0;
  const messages: StoredMessage[] = [];
  const reader = bus.openReader(stream, { after: 0, onReady: () => {} });
  const until = performance.now() + END_MS;
  while ((messages.at(-1)?.seq ?? 0) < last) {
    if (performance.now() > until) throw new Error(`${stream} cannot be read up to ${last}`);
    messages.push(...reader.take(1_000));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await reader.close();
  return messages;
}

/** The number of a message of ours; -1 for one of the honest agent. */
function numberOf(message: StoredMessage): number {
  const text = message.header("P6-N");
  return text === "" ? -1 : Number(text);
}

function mustAnswer({ sent }: Ledger, number: number): boolean {
  const message = sent[number];
  return message?.isNaming === true && message.reply === "ours" && isAnswered(message.subject);
}

function assertSameLeader(before: HostStatus, after: HostStatus): void {
  assert.equal(after.role, "leader");
  assert.equal(after.epoch, before.epoch);
  assert.equal(after.instance, before.instance);
  assert.equal(after.foreign, 0);
  for (const trouble of ["recoveries", "refolds", "intake_gaps", "obligations_failed"]) {
    assert.equal(after.counters[trouble], 0, trouble);
  }
}

/** Nothing in the intake but what we and the honest agent sent: no answer was led there. */
function assertOnlySent(intake: StoredMessage[]): void {
  for (const message of intake) {
    const isKnown = numberOf(message) >= 0 || message.subject.startsWith("hv.honest.in.tasks.");
    assert.ok(isKnown, `who sent ${message.subject} at ${message.seq}?`);
  }
}

/** One verdict for each message that the server stored and whose sender can be answered. */
function assertVerdicts(ledger: Ledger, intake: StoredMessage[], inbox: Inbox): void {
  const stored = new Set(intake.map(numberOf));
  ledger.sent.forEach(({ subject, isNaming, reply }, number) => {
    const verdicts = inbox.at(`${VERDICTS}.${number}`) as { type: string }[];
    const what = `verdicts on message ${number} to ${subject.slice(0, 100)}`;
    if (!isNaming || reply !== "ours" || !stored.has(number))
      assert.equal(verdicts.length, 0, what);
    else if (isAnswered(subject)) assert.equal(verdicts.length, 1, what);
    else assert.ok(verdicts.length <= 1, what);
    for (const { type } of verdicts) assert.match(type, /^event\.acknowledged$|\.rejected$/);
  });
}

/** One answer for each question; a fault of the service's own is none. */
function assertReads(questions: Question[], inbox: Inbox): void {
  questions.forEach(({ subject, body, fate, isWaiting }, number) => {
    const answers = inbox.at(`${ANSWERS}.${number}`) as { error?: { code: string } }[];
    const what = `answers to ${subject} ${new TextDecoder().decode(body).slice(0, 100)}`;
    assert.equal(answers.length, fate === "answered" ? 1 : 0, what);
    const [answer] = answers;
    if (!isWaiting) assert.notEqual(answer?.error?.code, "internal_error", what);
  });
}

/** Each stored message and each question is in one of the counters, and in one only. */
function assertCounts(
  attack: Attack,
  intake: StoredMessage[],
  after: HostStatus,
  inbox: Inbox,
): void {
  const { sent } = attack.ledger;
  const stored = intake.map((message) => sent[numberOf(message)]);
  const count = (name: string): number => after.counters[name] ?? 0;
  const fates = (fate: Question["fate"]) =>
    attack.questions.filter((asked) => asked.fate === fate).length;
  const nameless = stored.filter((message) => message?.isNaming === false).length;
  assert.equal(count("dropped"), nameless + fates("dropped"), "dropped");
  const judged = ["accepted", "begun", "rejected", "duplicates", "ignored"].map(count);
  assert.equal(
    judged.reduce((sum, each) => sum + each, nameless),
    intake.length,
    "judged",
  );
  const misled = stored.filter((message) => message?.reply === "elsewhere").length;
  assert.equal(count("replies_dropped"), misled + fates("replies_dropped"), "replies dropped");
  const toUs = [...inbox.received.keys()].filter((subject) => subject.startsWith(VERDICTS));
  const toHonest = stored.filter((message) => message === undefined).length;
  assert.equal(count("verdicts"), toUs.length + toHonest, "verdicts");
}

/** Every rule on every prefix, nobody else's entry, and every refusal is in it or counted in it. */
async function assertLog(bus: JetStreamBus, { counters }: HostStatus): Promise<void> {
  const until = performance.now() + ANSWERS_MS;
  let log = await readAll(bus, logStream("tasks"));
  // What is not logged one by one is counted in an entry once a second.
  while (refusalsIn(log) !== counters.rejected && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    log = await readAll(bus, logStream("tasks"));
  }
  assert.equal(refusalsIn(log), counters.rejected, "refusals logged or counted in the log");
  const report = checkTasks(log);
  assert.deepEqual(report.findings, []);
  assert.equal(report.foreign, 0);
}

const checkTasks = (log: StoredMessage[]): Report =>
  checkLog(log.map(recordOf), { domain: "tasks", stream: logStream("tasks") });

function refusalsIn(log: StoredMessage[]): number {
  const counted = log
    .filter(({ subject }) => subject === controlSubject(undefined, "tasks", "refused"))
    .map(({ data }) => (JSON.parse(new TextDecoder().decode(data)) as { total: number }).total);
  return counted.reduce((sum, total) => sum + total, checkTasks(log).refusals);
}
