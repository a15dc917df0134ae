/** What is owed by the families around tasks, and which of two owed things comes first. */
import type { Heartbeats, Instant, Owed } from "@harmovela/envelope";
import type { Duty } from "./agenda.ts";
import { missedOwed } from "./sessions.ts";
import type { FamilyState } from "./state.ts";

export function owedByFamily(
  state: FamilyState,
  service: string,
  now: Instant,
  heartbeats: Heartbeats | undefined,
): Owed | undefined {
  const { timers, steps } = state.agenda;
  const missed = heartbeats && missedOwed(state, service, now, heartbeats);
  const timer = timers.peek();
  if (timer && timer.due <= now && !(missed && missed.due < timer.due)) return owedDuty(timer);
  if (missed) return missed;
  const step = steps.peek();
  if (step) return owedDuty(step);
  const waits = [timer?.due, heartbeats && state.watched.peek()?.due];
  const wakeAt = Math.min(...waits.filter((due) => due !== undefined));
  return Number.isFinite(wakeAt) ? { wakeAt } : undefined;
}

function owedDuty({ event, tenant, urgency, due }: Duty): Owed {
  return { event, tenant, cause: event.id, urgency, due };
}

/** Timers by due time, then requests and steps; of two waits the shorter. `first` wins a tie. */
export function sooner(first: Owed | undefined, second: Owed | undefined): Owed | undefined {
  if (first === undefined) return second;
  if (second === undefined) return first;
  const [one, other] = [rankOf(first), rankOf(second)];
  if (one.rank !== other.rank) return one.rank < other.rank ? first : second;
  return one.at <= other.at ? first : second;
}

function rankOf(owed: Owed): { rank: number; at: Instant } {
  if ("wakeAt" in owed) return { rank: 2, at: owed.wakeAt };
  if ("urgency" in owed && owed.urgency === "timer") return { rank: 0, at: owed.due };
  return { rank: 1, at: 0 };
}
