/** How long nobody led: from the moment a leader was lost to the first entry of the next epoch. */
import { HEADER } from "@harmovela/bus";
import type { StoredRecord } from "@harmovela/check";
import { controlsOf } from "./stored-log.ts";

/** A leader that was killed, or stopped for longer than its lease. */
export interface Loss {
  epoch: number;
  /** Wall clock, which the server shares. */
  at: number;
  /** One that was only stopped may go on when nobody has taken over. */
  isKilled: boolean;
  /** Whether somebody who had read the whole log was there to take over, and the server ran on. */
  isPlain: boolean;
  /** What was done, and what before. */
  during: string;
}

export interface TakeOver {
  ms: number;
  isPlain: boolean;
  during: string;
}

/** What a leader had sent before it was lost is stored by then. */
const UNDER_WAY_MS = 200;

/** One for each loss that ended a leadership; a leader that was stopped and went on was not lost. */
export function takeOvers(records: StoredRecord[], losses: Loss[]): TakeOver[] {
  const epochs = controlsOf(records, "epoch").map(({ seq }) => seq);
  const begins = new Map(records.map(({ seq, time }) => [seq, time]));
  const lastOf = new Map<number, number>();
  for (const { headers, time } of records) lastOf.set(Number(headers[HEADER.epoch]), time);
  return losses.flatMap(({ epoch, at, isKilled, isPlain, during }) => {
    const next = epochs.find((seq) => seq > epoch);
    const begun = next === undefined ? undefined : begins.get(next);
    const hasGoneOn = !isKilled && (lastOf.get(epoch) ?? 0) > at + UNDER_WAY_MS;
    if (begun === undefined || begun < at || hasGoneOn) return [];
    return [{ ms: begun - at, isPlain, during }];
  });
}

/** "12 take-overs by a warm standby, median 640 ms, worst 912 ms (killLeader after killServer)". */
export function describeTakeOvers(what: string, all: TakeOver[]): string {
  const sorted = [...all].sort((a, b) => a.ms - b.ms);
  const median = sorted[Math.floor((sorted.length - 1) / 2)];
  const worst = sorted.at(-1);
  if (median === undefined || worst === undefined) return `no take-overs ${what}`;
  return (
    `${sorted.length} take-overs ${what}, median ${Math.round(median.ms)} ms, ` +
    `worst ${Math.round(worst.ms)} ms (${worst.during})`
  );
}
