/** What a batch needs from elsewhere before it can be judged without waiting. */
import { type Bus, decodeEntry } from "@harmovela/bus";
import type { LogEntry } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { AgentKeys } from "./agent-keys.ts";
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

/** Who signed what claims to be signed; whether that is worth anything is the decider's question. */
export async function lookAtSignatures(
  batch: readonly Arrived[],
  keys: AgentKeys | undefined,
): Promise<void> {
  if (keys === undefined) return;
  await Promise.all(
    batch.map(async ({ checked }) => {
      if (checked.kind !== "valid" || checked.signature !== undefined) return;
      if (checked.envelope.source_trust !== "signed") return;
      const facts = await keys.look(checked.envelope, checked.tenant);
      if (facts !== undefined) checked.signature = facts;
    }),
  );
}
