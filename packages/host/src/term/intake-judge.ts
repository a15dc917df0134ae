/** T1: messages are judged in intake order, after every timer that was due by then; what is missing among them is recorded. */
import { logStream } from "@harmovela/bus";
import type { HeartbeatMemory, LogEntry } from "@harmovela/envelope";
import type { Alarms } from "../alarms.ts";
import { lookAtSignatures, lookAtTokens, readOutcomes } from "../before-judging.ts";
import type { BrokerTime } from "../broker-time.ts";
import type { Counters } from "../counters.ts";
import type { IntakeQueue } from "../intake-queue.ts";
import { type Arrived, type JudgeContext, judge } from "../judge.ts";
import type { Obligations } from "../obligations.ts";

/** A turn leaves time for what the service owes (T3). */
export const MESSAGES_PER_TURN = 256;

export interface IntakeJudgeContext<State>
  extends Omit<
    JudgeContext<State>,
    "stream" | "isBlind" | "heartbeats" | "entryAt" | "onDecideError"
  > {
  time: BrokerTime;
  alarms: Alarms;
  counters: Counters;
  obligations: Obligations<State>;
  isOpen(): boolean;
  /** Runs what judges this message; false when the leadership has ended with it. */
  guard(intake: number, work: () => void): boolean;
}

export class IntakeJudge<State> {
  readonly #context: IntakeJudgeContext<State>;
  readonly #judging: JudgeContext<State>;
  readonly #stream: string;
  /** Entries that are needed to judge the batch at hand. */
  #read: ReadonlyMap<number, LogEntry> = new Map();

  constructor(context: IntakeJudgeContext<State>) {
    const { options, writer, alarms } = context;
    this.#context = context;
    this.#stream = logStream(options.domain);
    this.#judging = {
      ...context,
      stream: this.#stream,
      isBlind: false,
      heartbeats: undefined,
      entryAt: (seq) => writer.unacked(seq) ?? this.#read.get(seq),
      onDecideError: (error) =>
        alarms.raise(`decide failed: ${error instanceof Error ? error.message : error}`),
    };
  }

  /** An observed log could not be read up to its end. */
  set isBlind(isBlind: boolean) {
    this.#judging.isBlind = isBlind;
  }

  /** Where signs of life are kept. */
  set heartbeats(memory: HeartbeatMemory) {
    this.#judging.heartbeats = memory;
  }

  /** Judges what has been fetched and validated, as far as there is room. */
  async judge(intake: IntakeQueue): Promise<void> {
    const { waiting } = intake;
    if (waiting.length === 0) return;
    const { options, fold, writer, isOpen } = this.#context;
    this.#read = await readOutcomes(waiting, fold, {
      bus: options.writer,
      stream: this.#stream,
      isAtHand: (seq) => writer.unacked(seq) !== undefined,
    });
    await lookAtTokens(waiting, options.tokens);
    await lookAtSignatures(waiting, options.agentKeys);
    if (!isOpen()) return;
    let done = 0;
    for (const arrived of waiting) {
      if (done >= MESSAGES_PER_TURN || !this.#judgeOne(intake, arrived)) break;
      done += 1;
    }
    intake.shift(done);
    this.#read = new Map();
  }

  /** False when it must wait for room, for a read, or when the leadership is over. */
  #judgeOne(intake: IntakeQueue, arrived: Arrived): boolean {
    const { time, fold, obligations, writer, guard } = this.#context;
    const { message } = arrived;
    let isDone = false;
    const isFine = guard(message.seq, () => {
      arrived.at ??= time.instantOf(message, fold.at);
      if (message.seq > intake.judged + 1) this.recordGap(intake, message.seq - 1);
      if (!obligations.workOffTimers(arrived.at)) return;
      if (writer.room < 2) return;
      isDone = judge(this.#judging, arrived, arrived.at) === "done";
    });
    if (!isFine || !isDone) return false;
    intake.judged = message.seq;
    return true;
  }

  /** What the intake held up to here was removed before it was judged. */
  recordGap(intake: IntakeQueue, to: number): void {
    const { counters, alarms, fold, writer } = this.#context;
    const from = intake.judged + 1;
    counters.add("intake_gaps");
    alarms.raise(`the intake lost the messages ${from} to ${to}`);
    writer.control({ kind: "intake_gap", body: { from, to }, cause: { in: to }, at: fold.at });
    intake.judged = to;
  }
}
