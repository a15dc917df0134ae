/** What a batch needs from elsewhere before it can be judged without waiting. */
import { type Bus, decodeEntry } from "@harmovela/bus";
import type { LogEntry } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Fold } from "./fold.ts";
import type { Arrived } from "./judge.ts";
import type { TokenKeys } from "./tokens.ts";

/** Entries that settled an id which now comes again, so that the outcome can be repeated. */
export async function readOutcomes<State>(
  batch: readonly Arrived[],
  fold: Fold<State>,
  source: { bus: Bus; stream: string; isAtHand(seq: number): boolean },
): Promise<Map<number, LogEntry>> {
  const missing = new Set<number>();
  for (const { checked } of batch) {
    if (checked.kind !== "valid") continue;
    const seq = fold.outcomes.get(checked.tenant, checked.envelope.id);
    if (seq !== undefined && !source.isAtHand(seq)) missing.add(seq);
  }
  const read = new Map<number, LogEntry>();
  await Promise.all(
    [...missing].map(async (seq) => {
      const stored = await source.bus.read(source.stream, seq);
      const entry = stored === undefined ? undefined : decodeEntry(stored);
      if (entry === undefined) throw new HarmovelaError("internal_error", `no entry at ${seq}`);
      read.set(seq, entry);
    }),
  );
  return read;
}

/** Signatures are looked at here; what a token is worth is the decider's question. */
export async function lookAtTokens(
  batch: readonly Arrived[],
  tokens: TokenKeys | undefined,
): Promise<void> {
  if (tokens === undefined) return;
  await Promise.all(
    batch.map(async ({ checked }) => {
      if (checked.kind !== "valid" || checked.token !== undefined) return;
      const { handoff_token: token } = checked.envelope;
      if (token !== undefined) checked.token = await tokens.verify(token);
    }),
  );
}
