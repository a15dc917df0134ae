/** The log as it is stored, and what must be true of it whatever was killed. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  type Bus,
  controlSubject,
  HEADER,
  type JetStreamBus,
  logStream,
  type StoredMessage,
} from "@harmovela/bus";
import {
  checkLog,
  createChecker,
  type Report,
  recordOf,
  type StoredRecord,
} from "@harmovela/check";
import type { Domain, Envelope } from "@harmovela/envelope";
import { eventually, within } from "./deadline.ts";
import type { Given, Seen, Tried, Verdict } from "./recording.ts";

const STREAM = logStream("tasks");
export type ChaosDomain = "tasks" | "beliefs" | "interruptions";
const decoder = new TextDecoder();

export interface StoredEvent {
  seq: number;
  tenant: string;
  envelope: Envelope;
  cause: string;
  epoch: number;
  /** The time that it counts as. */
  at: number;
  /** When the broker stored it. */
  time: number;
}

/** Every stored message of a log, in order. */
export function readRecords(bus: Bus, domain: Domain = "tasks"): Promise<StoredRecord[]> {
  return readStream(bus, logStream(domain));
}

/** Every stored message of a stream, in order. */
export async function readStream(bus: Bus, stream: string): Promise<StoredRecord[]> {
  const last = (await bus.streamState(stream))?.lastSeq ?? 0;
  const messages: StoredMessage[] = [];
  if (last === 0) return [];
  let onRead = () => {};
  const read = new Promise<void>((resolve) => {
    onRead = resolve;
  });
  const reader = bus.openReader(stream, {
    after: 0,
    onReady: () =>
      queueMicrotask(() => {
        messages.push(...reader.take(1_024));
        if ((messages.at(-1)?.seq ?? 0) >= last) onRead();
      }),
  });
  await within(30_000, `the log is read up to ${last}`, read);
  await reader.close();
  return messages.filter(({ seq }) => seq <= last).map(recordOf);
}

/** Who wrote the newest `epoch`, and its position; undefined when nobody answers. */
export async function lastEpoch(
  bus: JetStreamBus,
  domain: Domain = "tasks",
): Promise<{ instance: string; epoch: number } | undefined> {
  try {
    // A server of 2.9 ends when it is asked for a message of a stream that is being made.
    if (!(await bus.streamState(logStream(domain)))?.messages) return undefined;
    const answer = await bus.nats.request(
      `$JS.API.STREAM.MSG.GET.${logStream(domain)}`,
      JSON.stringify({ last_by_subj: controlSubject(undefined, domain, "epoch") }),
    );
    const { message } = answer.json<{ message?: { data?: string } }>();
    const { instance, epoch } = JSON.parse(Buffer.from(message?.data ?? "", "base64").toString());
    return { instance, epoch };
  } catch {
    return undefined;
  }
}

/** What observers may see of it: the events, refusals included. */
export function eventsOf(records: StoredRecord[]): StoredEvent[] {
  return records.flatMap(({ seq, time, subject, headers, data }) => {
    const [, tenant = "", area] = subject.split(".");
    if (area !== "log") return [];
    return [
      {
        seq,
        tenant,
        envelope: JSON.parse(textOf(data)) as Envelope,
        cause: headers[HEADER.cause] ?? "",
        epoch: Number(headers[HEADER.epoch]),
        at: Number(headers[HEADER.at]),
        time,
      },
    ];
  });
}

/** The bodies of the control entries of one kind, with their positions. */
export function controlsOf(records: StoredRecord[], kind: string) {
  return records.flatMap(({ seq, subject, data }) =>
    subject.split(".")[2] === "ctl" && subject.endsWith(`.${kind}`)
      ? [{ seq, body: JSON.parse(textOf(data)) as Record<string, unknown> }]
      : [],
  );
}

function textOf(data: Uint8Array | string): string {
  return typeof data === "string" ? data : decoder.decode(data);
}

/**
 * No rule is broken on any prefix, and nothing owed is left. On replicated streams an entry of a
 * displaced leader can be stored, and is foreign to every fold (architecture, section 1).
 */
export function assertGreen(
  records: StoredRecord[],
  {
    domain = "tasks",
    isForeignAllowed = false,
  }: { domain?: ChaosDomain; isForeignAllowed?: boolean } = {},
): Report {
  const report = checkLog(records, { domain, stream: logStream(domain), settled: true });
  assert.deepEqual(report.findings, []);
  if (!isForeignAllowed) assert.equal(report.foreign, 0);
  assert.equal(report.plansOpen, 0);
  assert.equal(report.control.intake_gap, undefined, "nothing was skipped in the intake");
  assert.equal(report.control.obligation_failed, undefined);
  return report;
}

/** The entries that count: without what is foreign to every fold. */
export function ownOf(records: StoredRecord[]): StoredRecord[] {
  const checker = createChecker({ domain: "tasks", stream: STREAM });
  return records.filter((record) => {
    const before = checker.report.foreign;
    checker.push(record);
    return checker.report.foreign === before;
  });
}

/** Waits until nothing is owed any more; resolves with the log. */
export function untilSettled(bus: Bus, ms: number, liveTasks?: number): Promise<StoredRecord[]> {
  return eventually(ms, "nothing is owed any more", async () => {
    const records = await readRecords(bus);
    const report = checkLog(records, { domain: "tasks", stream: STREAM, settled: true });
    const { "plan-open": plans = 0, "gentle-open": requests = 0 } = report.findingsByRule;
    const isLeft = liveTasks !== undefined && report.liveTasks !== liveTasks;
    return plans > 0 || requests > 0 || isLeft ? undefined : records;
  });
}

/** What was acknowledged is in the log once, where it was said to be; what was refused is not. */
export function assertAsAnswered(records: StoredRecord[], verdicts: Verdict[]): void {
  const places = new Map<string, number[]>();
  for (const { seq, tenant, envelope } of eventsOf(records)) {
    const key = `${tenant} ${envelope.id}`;
    places.set(key, [...(places.get(key) ?? []), seq]);
  }
  const begun = new Set(controlsOf(records, "begun").map(({ seq }) => seq));
  for (const { tenant, id, type, verdict, cursor, pending } of verdicts) {
    const found = places.get(`${tenant} ${id}`) ?? [];
    const isAccepted = verdict === "event.acknowledged";
    assert.equal(found.length, isAccepted ? 1 : 0, `${id} ${type} ${verdict} at ${found}`);
    if (!isAccepted) continue;
    const position = Number(cursor?.split(":")[1]);
    const isWhere = found[0] === position || (pending && begun.has(position));
    assert.ok(isWhere, `${id} ${type} is at ${found}, was said to be at ${cursor}`);
  }
}

/** A plain subscriber saw nothing but what is stored, byte for byte; the number of messages it saw. */
export function assertSeenIsStored(records: StoredRecord[], seen: Seen[]): number {
  const stored = new Map(
    records.map(({ seq, subject, data }) => {
      const sha = createHash("sha256").update(data).digest("hex");
      return [seq, `${subject.replace(/^(hv\.[^.]+)\.log\./, "$1.ev.")} ${sha}`];
    }),
  );
  for (const { seq, subject, sha } of seen) {
    assert.equal(`${subject} ${sha}`, stored.get(seq), `position ${seq} as seen`);
  }
  const sequences = seen.map(({ seq }) => seq);
  const ordered = [...new Set(sequences)].sort((a, b) => a - b);
  assert.deepEqual(sequences, ordered, "seen in the order of the log, each once");
  return sequences.length;
}

/** Each token that was given out was recorded first, once (spec 7). */
export function assertTokensRecorded(records: StoredRecord[], given: Given[]): void {
  const issued = controlsOf(records, "token_issued").map(({ body }) => String(body.jti));
  assert.equal(new Set(issued).size, issued.length, "no token is issued twice");
  const known = new Set(issued);
  for (const { task, jti } of given)
    assert.ok(known.has(jti), `${jti} of ${task} was not recorded`);
}

/**
 * Appends of displaced leaders: a plain subscriber saw them going out after the entry that began the
 * next leadership, and they are not in the log.
 */
export function countDisplaced(records: StoredRecord[], tried: Tried[]): number {
  const key = ({ subject, sha, epoch }: Tried) => `${subject} ${sha} ${epoch}`;
  const stored = new Map(
    records.map(({ seq, subject, headers, data }) => {
      const sha = createHash("sha256").update(data).digest("hex");
      return [key({ subject, sha, epoch: Number(headers[HEADER.epoch]) }), seq];
    }),
  );
  let inForce = 0;
  let count = 0;
  for (const each of tried) {
    const seq = stored.get(key(each));
    if (seq !== undefined && seq === each.epoch) inForce = Math.max(inForce, seq);
    if (seq === undefined && each.epoch < inForce) count += 1;
  }
  return count;
}
