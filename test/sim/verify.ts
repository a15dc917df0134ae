/** What must be true of a verdict when it arrives, and of everything when the world is at rest. */
import assert from "node:assert/strict";
import { describeState, type TaskState } from "@harmovela/delegation-coordinator";
import type { Envelope } from "@harmovela/envelope";
import type { Crowd, Sent } from "./crowd.ts";
import { isRetryable } from "./crowd.ts";
import { contentOf } from "./intake-book.ts";
import { type Oracle, positionOf } from "./oracle.ts";
import type { Replica } from "./replica.ts";

const isAcknowledged = (verdict: Envelope): boolean => verdict.type === "event.acknowledged";
const payloadOf = (envelope: Envelope) => envelope.payload as Record<string, unknown>;
const nameOf = ({ draft }: Sent): string =>
  `${draft.tenant} ${draft.envelope.id} ${draft.envelope.type}`;

/** A verdict speaks of what is stored already, and of the envelope that it names (P2). */
export function assertVerdict(oracle: Oracle, sent: Sent, verdict: Envelope): void {
  const { tenant, envelope } = sent.draft;
  const id = String(envelope.id);
  if (!isAcknowledged(verdict)) {
    const stored = oracle.events(tenant, verdict.id);
    assert.equal(stored.length, 1, `${nameOf(sent)}: refused, but the refusal is not in the log`);
    const { details } = payloadOf(verdict).error as { details?: { duplicate_of?: string } };
    const other = oracle.entry(positionOf(details?.duplicate_of));
    assert.ok(other === undefined || other.tenant === tenant, `${nameOf(sent)}: of another tenant`);
    return;
  }
  const { cursor, duplicate, acknowledged_event_id: acknowledged } = payloadOf(verdict);
  assert.equal(acknowledged, id, `${nameOf(sent)}: acknowledged under another id`);
  const entry = oracle.entry(positionOf(cursor));
  assert.ok(entry, `${nameOf(sent)}: acknowledged before it was stored (${cursor})`);
  assert.equal(entry.tenant, tenant, `${nameOf(sent)}: settled by another tenant`);
  if (entry.kind === "begun") assert.equal(entry.plan.envelope.id, id, nameOf(sent));
  else if (duplicate !== true) assert.ok(entry.kind === "event" && entry.envelope.id === id);
}

/** An answer to a read rests on what is stored, and holds what its cursor names. */
export function assertAnswer(
  oracle: Oracle,
  cursor: string,
  answer: { position?: string; error?: { code: string } },
): void {
  const { position, error } = answer;
  if (error !== undefined) {
    assert.equal(error.code, "internal_error", "a task that was accepted is not found");
    return;
  }
  const at = positionOf(position);
  assert.ok(at <= oracle.lastSeq, `an answer rests on ${position}, which is not stored`);
  assert.ok(at >= positionOf(cursor), `an answer rests on ${position}, before ${cursor}`);
}

/** Nobody gets a token that the log does not know of (spec 7). Undefined: it was refused. */
export function assertIssued(oracle: Oracle, tenant: string, text: string): string | undefined {
  const { result } = JSON.parse(text) as { result?: { token: string; jti: string } };
  if (result === undefined) return undefined;
  assert.ok(oracle.isIssued(tenant, result.jti), `${result.jti} was given before it was stored`);
  return result.token;
}

export interface Rest {
  oracle: Oracle;
  crowd: Crowd;
  replicas: readonly Replica<TaskState>[];
  isStillAsked(seq: number): boolean;
}

export function assertAtRest({ oracle, crowd, replicas, isStillAsked }: Rest): void {
  if (oracle.interruptions === undefined) {
    assert.deepEqual(oracle.checker.end(), [], "the log at rest");
  }
  assertShown(oracle, crowd);
  assertNoOrphan(oracle);
  const settledByOthers = assertOnce(oracle, crowd);
  oracle.intake.heartbeats((...sign) => oracle.sessions.hear(...sign));
  oracle.sessions.assertHeard();
  oracle.intake.assertComplete(isStillAsked, (text) => settledByOthers.has(text));
  const full = describeState(oracle.fold.state);
  for (const { instance, state, host } of replicas) {
    assert.ok(state, `${instance} has no state`);
    assert.deepEqual(describeState(state), full, `${instance} has another state than a full fold`);
    const broken = host?.status().alarms.filter(({ alarm }) => / failed: /.test(alarm));
    assert.deepEqual(broken, [], `${instance} met a broken rule`);
  }
}

/** No task outlives the session that had it and was lost (spec 5.1). */
function assertNoOrphan({ fold }: Oracle): void {
  for (const { name, tasks } of fold.state.tenants.values()) {
    for (const { id, ended, instance, hold } of tasks.values()) {
      // One that is stopped waits for somebody who resumes it.
      const isOrphan = ended === undefined && instance?.lost !== undefined && !hold?.since;
      assert.ok(!isOrphan, `${name} ${id} lives on, though ${instance?.session} was lost`);
    }
  }
}

/** An observer saw under `ev` exactly what is stored, in order (P2, P3). */
function assertShown(oracle: Oracle, crowd: Crowd): void {
  assert.equal(crowd.seen.length, oracle.shown.length, "entries that an observer saw");
  for (const [index, shown] of oracle.shown.entries()) {
    assert.deepEqual(crowd.seen[index], shown);
  }
}

/**
 * Nothing acknowledged is lost or accepted twice, and no envelope is both accepted and refused (P2).
 * Returns what was acknowledged because a cascade had done it already.
 */
function assertOnce(oracle: Oracle, crowd: Crowd): Set<string> {
  const settledByOthers = new Set<string>();
  const fates = new Map<string, { isAccepted: boolean; isRefused: boolean }>();
  for (const sent of crowd.sent) {
    const { tenant, envelope, wants } = sent.draft;
    if (wants === "storage") continue;
    const id = String(envelope.id);
    const content = contentOf(sent.subject, Buffer.from(sent.data).toString());
    const fate = fates.get(content) ?? { isAccepted: false, isRefused: false };
    fates.set(content, fate);
    for (const verdict of sent.verdicts) {
      if (isAcknowledged(verdict)) fate.isAccepted = true;
      else if (!isRetryable(verdict)) fate.isRefused = true;
      if (!isAcknowledged(verdict)) continue;
      const entry = oracle.entry(positionOf(payloadOf(verdict).cursor));
      const isOther = entry?.kind === "event" && entry.envelope.id !== id;
      // A cancel that repeats what a cascade has done is settled by the cascade's own event.
      if (isOther) settledByOthers.add(Buffer.from(sent.data).toString());
      const times = isOther ? 0 : 1;
      assert.equal(oracle.events(tenant, id).length, times, `${nameOf(sent)}: times in the log`);
    }
    assert.ok(
      !(fate.isAccepted && fate.isRefused),
      `${nameOf(sent)}: both accepted and refused: ${JSON.stringify(sent.verdicts)}`,
    );
  }
  return settledByOthers;
}
