/**
 * Random talk about a few subjects, judged by the real decider; what it writes as a log on a disk. The
 * checker, which knows nothing of the decider, must find nothing in it.
 */

import {
  type BeliefState,
  createBeliefDecider,
  DEFAULT_BELIEF_SETTINGS,
} from "@harmovela/belief-tracker";
import { HEADER } from "@harmovela/bus";
import type { StoredRecord } from "@harmovela/check";
import {
  type DomainEntry,
  type Envelope,
  type EventEntry,
  formatInstant,
} from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type Given, given, SimRandom } from "@harmovela/testkit";

const START = Date.UTC(2026, 10, 30, 10);
const STREAM = "HV_LOG_BELIEFS";
export const SOURCES = [
  "agent:a",
  "agent:b",
  "agent:c",
  "memory:main",
  "context:main",
  "harness:h",
] as const;
const SPANS = ["PT0S", "PT1S", "PT5S", "PT1M", "P1M"] as const;

export class BeliefTraffic {
  readonly world: Given<BeliefState>;
  readonly #random: SimRandom;
  readonly #ids: string[] = ["evt_elsewhere"];
  /** Evidence that was lost, and how long the log was then. */
  readonly losses: { readonly after: number; readonly entry: EventEntry }[] = [];
  readonly #sources: readonly string[];
  #made = 0;

  /** `sources`: who talks, where that is not only agents and the systems of memory and context. */
  constructor(seed: number, sources: readonly string[] = SOURCES) {
    this.#random = new SimRandom(seed);
    this.#sources = sources;
    const decider = createBeliefDecider(DEFAULT_BELIEF_SETTINGS);
    this.world = given(decider, { service: DEFAULT_BELIEF_SETTINGS.service, at: START });
  }

  /** So many envelopes, with what the service owes between them; at the end it is at rest. */
  run(count: number): void {
    const { world } = this;
    for (let at = 0; at < count; at += 1) {
      // What is due is worked off before what is stored later.
      if (this.#random.chance(0.4)) world.wait(this.#below(3_000));
      world.settle();
      if (this.#random.chance(0.05)) this.#lose();
      world.judge(this.#envelope());
      // A plan may still be under way when the next envelope comes.
      for (let steps = this.#below(4); steps > 0; steps -= 1) world.step();
    }
    world.settle(world.now + this.#below(90_000));
  }

  /** The log of `provenance` says that an event can no longer be had (spec section 8). */
  #lose(): void {
    const { world } = this;
    const at = world.now;
    const seq = this.losses.length + 1;
    const envelope: Envelope = {
      spec_version: "0.2",
      id: `lost_${seq}`,
      type: "provenance.chain.truncated",
      source: "service:provenance-attester",
      created_at: formatInstant(at),
      payload: { missing_from: this.#id(), earliest_available: "x", reason: "retention" },
    };
    const frame = { seq, tenant: world.tenant, at, epoch: 1, prev: seq - 1, seen: {} };
    const entry = { ...frame, kind: "event", cause: { in: seq }, envelope } as const;
    world.decider.observe?.(world.state, "provenance", entry);
    this.losses.push({ after: world.log.length, entry });
  }

  #envelope(): Envelope {
    const kind = this.#below(13);
    if (kind < 5) return this.#claim();
    if (kind === 12) return this.#unnamed();
    if (kind < 7) return this.#revision();
    if (kind < 9) return this.#invalidation();
    if (kind < 11) return this.#change();
    return this.#report();
  }

  #claim(): Envelope {
    const value = this.#random.pick([1, 1, 2, "x", { a: [1] }]);
    const fields = { ...this.#grounds(), ...this.#window() };
    if (this.#random.chance(0.2)) {
      const payload = { context_key: this.#name(), new_value: value };
      return this.#event("context.updated", payload, fields);
    }
    const fact = { fact_id: this.#name() };
    if (this.#random.chance(0.2)) {
      const payload = this.#random.chance(0.5) ? { ...fact, new_value: value } : fact;
      return this.#event("memory.fact.updated", payload, fields);
    }
    return this.#event("memory.fact.added", { ...fact, value }, fields);
  }

  /** What asserts something that has no name of its own, or one in another field. */
  #unnamed(): Envelope {
    const type = this.#random.pick([
      "memory.episode.stored",
      "context.retrieval.completed",
      "state.snapshot.ready",
    ]);
    const named: JsonObject = this.#random.chance(0.5) ? { resource: this.#resource() } : {};
    if (this.#random.chance(0.7)) return this.#event(type, named, this.#grounds());
    const payload = { snapshot_id: this.#name(), data: this.#below(2) };
    return this.#event("context.snapshot.ready", payload, this.#grounds());
  }

  #revision(): Envelope {
    const payload = { previous: "1", corrected: this.#random.pick(["1", "2", "y"]) };
    const fields = { belief_status: "revised", belief_scope: "fact", ...this.#window() } as const;
    return this.#event("belief.revised", payload, { ...fields, ...this.#grounds() });
  }

  #invalidation(): Envelope {
    const fields: Partial<Envelope> = this.#random.chance(0.8)
      ? { belief_status: "retracted" }
      : {};
    if (this.#random.chance(0.3)) fields.causation_id = this.#id();
    const instead: JsonObject = this.#random.chance(0.2) ? { replaced_by: this.#id() } : {};
    if (this.#random.chance(0.2)) {
      return this.#event("context.invalidated", { context_key: this.#name() }, fields);
    }
    if (this.#random.chance(0.1)) {
      return this.#event("state.invalidated", { resource: this.#resource() }, fields);
    }
    return this.#event("memory.fact.invalidated", { fact_id: this.#name(), ...instead }, fields);
  }

  #change(): Envelope {
    const end = this.world.now + this.#below(10_000) - 3_000;
    const payload = { resource: this.#resource(), new_valid_until: formatInstant(end) };
    return this.#event("freshness.window.changed", payload, {});
  }

  #report(): Envelope {
    const claims = [
      { source: "agent:a", value: 1 },
      { source: "agent:b", value: 2 },
    ];
    const payload = { subject: this.#resource(), claims };
    return this.#event("belief.conflict.detected", payload, { belief_status: "contradicted" });
  }

  #event(type: string, payload: JsonObject, fields: Partial<Envelope>): Envelope {
    this.#made += 1;
    // Evidence may be cited before it comes.
    const id = `evt_${this.#made}`;
    this.#ids.push(id, `evt_${this.#made + 2}`);
    return {
      spec_version: "0.2",
      id,
      type,
      source: this.#random.pick(this.#sources) ?? "agent:a",
      created_at: formatInstant(this.world.now - this.#below(3) * 500),
      payload,
      ...fields,
    };
  }

  #grounds(): Partial<Envelope> {
    const ids = Array.from({ length: this.#below(3) }, () => this.#id());
    const chain = ids.map((id) => ({ source: "agent:x", id }));
    const last = ids.at(-1);
    if (last === undefined) return {};
    if (this.#random.chance(0.3)) return { causation_id: last };
    return { evidence_chain: chain, ...(this.#random.chance(0.7) ? { causation_id: last } : {}) };
  }

  #window(): Partial<Envelope> {
    const fields: Partial<Envelope> = {};
    if (this.#random.chance(0.3)) fields.stale_after = this.#random.pick(SPANS);
    if (this.#random.chance(0.2)) {
      fields.valid_until = formatInstant(this.world.now + this.#below(6_000) - 1_000);
    }
    if (this.#random.chance(0.1)) fields.valid_from = formatInstant(this.world.now + 2_000);
    return fields;
  }

  /** One of the newest events: chains grow long, and the old ones are cited too. */
  #id(): string {
    const { length } = this.#ids;
    if (this.#random.chance(0.2)) return this.#random.pick(this.#ids) ?? "evt_elsewhere";
    const latest = [...this.world.log].reverse().find((entry) => entry.kind === "event");
    if (latest?.kind === "event" && this.#random.chance(0.3)) return latest.envelope.id;
    return this.#ids[Math.max(0, length - 1 - this.#below(8))] ?? "evt_elsewhere";
  }

  /** A whole number from 0 on. */
  #below = (end: number): number => this.#random.whole(0, end - 1);

  #name = (): string => this.#random.pick(["f", "g", "h"]);

  #resource(): string {
    if (this.#random.chance(0.1)) return `belief:${this.#id()}`;
    return `${this.#random.pick(["memory", "memory", "context"])}:${this.#name()}`;
  }

  /** As a leader stores it. */
  records(): StoredRecord[] {
    let sequence = 0;
    const epoch = record(1, "hv.-.ctl.beliefs.epoch", "owed:epoch", START, {
      epoch: 1,
      settings: { ...DEFAULT_BELIEF_SETTINGS },
    });
    return [
      epoch,
      ...this.world.log.map((entry, index) => {
        if (entry.kind === "event") sequence += 1;
        const seen = this.losses.filter(({ after }) => after <= index).length;
        return stored(entry, { seq: index + 2, sequence, seen });
      }),
    ];
  }
}

function stored(
  entry: DomainEntry,
  { seq, sequence, seen }: { seq: number; sequence: number; seen: number },
): StoredRecord {
  const { tenant, cause, at } = entry;
  const causeText = "in" in cause ? `in:${cause.in}` : `owed:${cause.owed}`;
  if (entry.kind === "event") {
    const { source, target = "-", type } = entry.envelope;
    const subject = `hv.${tenant}.log.beliefs.${source}.${target}.${type}`;
    const delivery = { cursor: `${STREAM}:${seq}`, sequence };
    return record(seq, subject, causeText, at, { ...entry.envelope, delivery }, seen);
  }
  const body = entry.kind === "begun" ? { plan: entry.plan } : { id: causeText };
  return record(seq, `hv.${tenant}.ctl.beliefs.${entry.kind}`, causeText, at, body, seen);
}

function record(
  seq: number,
  subject: string,
  cause: string,
  at: number,
  body: object,
  seen = 0,
): StoredRecord {
  const headers = {
    [HEADER.cause]: cause,
    [HEADER.at]: String(at),
    [HEADER.epoch]: "1",
    [HEADER.prev]: String(seq - 1),
    ...(seen === 0 ? {} : { [HEADER.seen]: `provenance:${seen}` }),
  };
  return { seq, time: at, subject, headers, data: JSON.stringify(body) };
}
