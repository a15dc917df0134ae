/**
 * Every message that the intake ever held and what became of it: judged in order and in time, or named
 * as lost (architecture, sections 4 to 6).
 */
import assert from "node:assert/strict";
import { parseIntakeSubject, type StoredMessage } from "@harmovela/bus";
import { type Envelope, type Instant, type LogEntry, sessionIdOf } from "@harmovela/envelope";
import { isLoss, type Sign } from "./session-book.ts";

interface Asked {
  subject: string;
  text: string;
  time: Instant;
  /** Broker time as it would be without steps back: what a service may have believed by then. */
  reached: Instant;
}

/** What the service says when nobody has answered in time; its time is when that was due. */
const TIMED: ReadonlySet<string> = new Set([
  "task.timed_out",
  "delegation.rejected",
  "command.rejected",
  "query.rejected",
]);

const decoder = new TextDecoder();

export class IntakeBook {
  readonly #asked: Asked[] = [];
  readonly #judged = new Set<number>();
  readonly #lost = new Set<number>();
  /** The first judged message with this content. */
  readonly #firstJudged = new Map<string, number>();
  /** The latest due time that something was worked off at. */
  #fired: Instant = 0;
  /** Time of the newest entry, and when the message judged last was stored. */
  #decided: Instant = 0;
  #stored: Instant = 0;
  /** By how much store times have gone back behind what was decided: so far ahead of them it may lie since. */
  #setBackMs = 0;

  get lastSeq(): number {
    return this.#asked.length;
  }

  push({ subject, data, time }: StoredMessage, reached: Instant): void {
    this.#asked.push({ subject, text: decoder.decode(data), time, reached });
  }

  #at(seq: number): Asked {
    const asked = this.#asked[seq - 1];
    assert.ok(asked, `the log speaks of intake ${seq}, which was never stored`);
    return asked;
  }

  /** What an entry settles, as a sign of its sender's life. */
  signOf({ cause }: Extract<LogEntry, { cause: unknown }>): Sign | undefined {
    return "in" in cause ? this.#at(cause.in) : undefined;
  }

  /** Heartbeats that the service was bound to hear: none was lost. */
  heartbeats(hear: (tenant: string, source: string, session: string, sign: Sign) => void): void {
    for (const [index, asked] of this.#asked.entries()) {
      const seq = index + 1;
      const address = parseIntakeSubject(asked.subject);
      if (this.#lost.has(seq) || address?.type !== "session.heartbeat") continue;
      const id = sessionIdOf(JSON.parse(asked.text) as Envelope);
      if (id !== undefined) hear(address.tenant, address.source, id, asked);
    }
  }

  /** The log's next entry. `nextDue`: when the earliest timer of the state before it is due. */
  judge(entry: LogEntry, nextDue: (now: Instant) => Instant | undefined): void {
    if (entry.kind === "intake_gap") {
      const { from, to } = entry.body as { from: number; to: number };
      for (let seq = from; seq <= to; seq += 1) this.#lost.add(seq);
    }
    const decided = this.#decided;
    this.#decided = Math.max(decided, entry.at);
    if (entry.kind !== "event" && entry.kind !== "begun") return;
    if ("owed" in entry.cause) {
      const isLost = entry.kind === "event" && isLoss(entry);
      const { type, created_at: due } =
        entry.kind === "event" ? entry.envelope : entry.plan.envelope;
      if (isLost || TIMED.has(type)) this.#fired = Math.max(this.#fired, Date.parse(due));
      return;
    }
    const seq = entry.cause.in;
    const { subject, text, time, reached } = this.#at(seq);
    if (time < this.#stored) this.#setBackMs = Math.max(this.#setBackMs, decided - time);
    this.#stored = time;
    // A heartbeat leaves no entry: the leader before may have heard it in time.
    const isInTime = reached + this.#setBackMs >= this.#fired || isHeartbeat(text);
    assert.ok(isInTime, `entry ${entry.seq}: intake ${seq} came in time, too late now`);
    const due = nextDue(time);
    assert.ok(
      due === undefined || due > time,
      `entry ${entry.seq}: a timer of ${due} was due first`,
    );
    this.#judged.add(seq);
    const content = contentOf(subject, text);
    if (!this.#firstJudged.has(content)) this.#firstJudged.set(content, seq);
  }

  /** Nothing was passed over: each message has its entry, repeats one that has, or is named as lost. */
  assertComplete(
    isStillStored: (seq: number) => boolean,
    isSettledOtherwise: (text: string) => boolean,
  ) {
    for (const [index, { subject, text }] of this.#asked.entries()) {
      const seq = index + 1;
      const isJudged = this.#judged.has(seq);
      if (this.#lost.has(seq)) {
        assert.ok(!isJudged, `intake ${seq} is named as lost and was judged`);
        assert.ok(!isStillStored(seq), `intake ${seq} is named as lost and is still there`);
      } else if (!isJudged) {
        const first = this.#firstJudged.get(contentOf(subject, text)) ?? Number.POSITIVE_INFINITY;
        const isFine = first < seq || leavesNoEntry(subject, text) || isSettledOtherwise(text);
        assert.ok(isFine, `intake ${seq} was passed over: ${subject} ${text}`);
      }
    }
  }
}

const isHeartbeat = (text: string): boolean => text.includes('"type":"session.heartbeat"');

const leavesNoEntry = (subject: string, text: string): boolean =>
  subject.includes("%3A") || isHeartbeat(text);

/** What makes two messages the same: when they were made does not count (architecture, section 4). */
export function contentOf(subject: string, text: string): string {
  return `${subject} ${text.replace(/"created_at":"[^"]*"/, "")}`;
}
