/**
 * Every message that the intake ever held and what became of it: judged in order and in time, or named
 * as lost (architecture, sections 4 to 6).
 */
import assert from "node:assert/strict";
import type { StoredMessage } from "@harmovela/bus";
import type { Instant, LogEntry } from "@harmovela/envelope";

interface Asked {
  subject: string;
  text: string;
  time: Instant;
  /** Broker time as it would be without steps back: what a service may have believed by then. */
  reached: Instant;
}

const decoder = new TextDecoder();

export class IntakeBook {
  readonly #asked: Asked[] = [];
  readonly #judged = new Set<number>();
  readonly #lost = new Set<number>();
  /** The first judged message with this content. */
  readonly #firstJudged = new Map<string, number>();
  /** The latest due time that a deadline was worked off at. */
  #fired: Instant = 0;

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

  /** The log's next entry. `nextDue`: when the earliest timer of the state before it is due. */
  judge(entry: LogEntry, nextDue: (now: Instant) => Instant | undefined): void {
    if (entry.kind === "intake_gap") {
      const { from, to } = entry.body as { from: number; to: number };
      for (let seq = from; seq <= to; seq += 1) this.#lost.add(seq);
    }
    if (entry.kind !== "event" && entry.kind !== "begun") return;
    if ("owed" in entry.cause) {
      const { type, created_at: due } =
        entry.kind === "event" ? entry.envelope : entry.plan.envelope;
      if (type === "task.timed_out") this.#fired = Math.max(this.#fired, Date.parse(due));
      return;
    }
    const seq = entry.cause.in;
    const { subject, text, time, reached } = this.#at(seq);
    assert.ok(
      reached >= this.#fired,
      `entry ${entry.seq}: intake ${seq} came in time, too late now`,
    );
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

const leavesNoEntry = (subject: string, text: string): boolean =>
  subject.includes("%3A") || text.includes('"type":"session.heartbeat"');

/** What makes two messages the same: when they were made does not count (architecture, section 4). */
export function contentOf(subject: string, text: string): string {
  return `${subject} ${text.replace(/"created_at":"[^"]*"/, "")}`;
}
