/** What must be true of everything when a simulated world of the attester is at rest. */
import assert from "node:assert/strict";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { ServiceDefinition } from "@harmovela/host";
import { type AttesterState, describeState } from "@harmovela/provenance-attester";
import type { SimRandom } from "@harmovela/testkit";
import { isRetryable, type Sent } from "./crowd.ts";
import type { LineageBook } from "./lineage-book.ts";
import type { Replica } from "./replica.ts";

const CUTS = 2;

/** What came of what was said. */
export interface Outcome {
  attested: number;
  revoked: number;
  waited: number;
  neverSeen: number;
  truncated: number;
  counted: number;
}

export interface AttesterRest {
  book: LineageBook;
  replicas: readonly Replica<AttesterState>[];
  definition: ServiceDefinition<AttesterState>;
  tenant: string;
  random: SimRandom;
  sent: readonly Sent[];
  /** Less is remembered than what the counts rest on. */
  isForgetful: boolean;
  /** When the world began. */
  begun: number;
}

export async function verifyAttester(rest: AttesterRest): Promise<Outcome> {
  const { book, replicas, random, sent, isForgetful } = rest;
  assert.deepEqual(await book.findings(), [], "the checker, at rest");
  const full = describeState(book.fold.state);
  for (const { instance, state, host } of replicas) {
    assert.ok(state, `${instance} has no state`);
    assert.deepEqual(describeState(state), full, `${instance} has another state than a full fold`);
    const broken = host?.status().alarms.filter(({ alarm }) => / failed: /.test(alarm));
    assert.deepEqual(broken, [], `${instance} met a broken rule`);
  }
  for (const order of [
    ["interruptions", "beliefs", "tasks"],
    ["beliefs", "tasks", "interruptions"],
  ] as const) {
    const { state } = book.refold(order);
    assert.deepEqual(describeState(state), full, `read in the order ${order}`);
  }
  for (let count = 0; count < CUTS; count += 1) {
    const at = random.whole(0, book.messages.length);
    const { full: whole, resumed } = await book.aroundSnapshot(at);
    assert.ok(whole.equals(resumed), `a snapshot at ${at} and the tail give another state`);
  }
  assertOnce(sent, book.ownEvents);
  return { counted: isForgetful ? 0 : await compareCounts(rest), ...outcomeOf(rest) };
}

/** Each count that is told is the one that the bare logs give. */
async function compareCounts({ book, definition, tenant }: AttesterRest): Promise<number> {
  let all = 0;
  const context = {
    tenant,
    source: "agent:reader",
    now: book.fold.at,
    event: async () => undefined,
    signature: async () => undefined,
  };
  for (const [id, count] of book.counts()) {
    const read = definition.reads.attestations;
    const view = (await read?.(book.fold.state, { event_id: id }, context)) as JsonObject;
    assert.equal(view.attestation_count, count, `attestations of ${id}`);
    all += count;
  }
  return all;
}

function outcomeOf({ book, definition, begun }: AttesterRest): Omit<Outcome, "counted"> {
  const { entries, ownEvents } = book;
  const ofType = (type: string): Envelope[] => ownEvents.filter((event) => event.type === type);
  const told = ofType("provenance.chain.truncated").filter(
    ({ source }) => source === definition.service,
  );
  for (const { id, created_at: at } of told) assert.ok(Date.parse(at) >= begun, `${id} of ${at}`);
  assert.equal(new Set(told.map(({ causation_id: of }) => of)).size, told.length, "told once");
  const refusals = entries.filter(
    (entry) => entry.kind === "event" && entry.envelope.type === "event.rejected",
  );
  return {
    attested: ofType("provenance.attestation.added").length,
    revoked: ofType("provenance.attestation.revoked").length,
    waited: entries.filter(({ kind }) => kind === "begun").length,
    neverSeen: refusals.filter(({ cause }) => "owed" in cause).length,
    truncated: told.length,
  };
}

/** What was acknowledged is in the log once, or refused at the end of its wait; what was refused is not. */
function assertOnce(sent: readonly Sent[], events: readonly Envelope[]): void {
  for (const { draft, verdicts } of sent) {
    const id = String(draft.envelope.id);
    const times = events.filter((event) => event.id === id).length;
    const refusals = events.filter(
      ({ type, causation_id: of }) => type === "event.rejected" && of === id,
    ).length;
    assert.ok(times + Math.min(refusals, 1) >= 1, `${id} is nowhere`);
    assert.ok(times <= 1, `${id} is there ${times} times`);
    for (const verdict of verdicts) {
      if (isRetryable(verdict) || verdict.type === "event.acknowledged") continue;
      assert.equal(times, 0, `${id} was refused and is there`);
    }
  }
}
