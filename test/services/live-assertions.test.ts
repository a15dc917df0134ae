/**
 * What is a live assertion does not depend on who asks (spec 6.1): the belief tracker and the provenance
 * attester hold the same ones after every entry of a log, and the checker, which has rules of its own,
 * contradicts neither.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBeliefDecider, DEFAULT_BELIEF_SETTINGS } from "@harmovela/belief-tracker";
import type { DomainEntry, Envelope, EventEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { createAttesterDecider, DEFAULT_ATTESTER_SETTINGS } from "@harmovela/provenance-attester";
import { given } from "@harmovela/testkit";
import { BeliefDomain } from "../../packages/check/src/beliefs/belief-domain.ts";
import { FindingSink } from "../../packages/check/src/finding.ts";
import { BeliefTraffic, SOURCES } from "../sim/belief-traffic.ts";

const NOW = Date.UTC(2026, 10, 30, 10);
/** Also those of whom the rules say something else than of agents. */
const ALL = [...SOURCES, "service:elsewhere", DEFAULT_BELIEF_SETTINGS.service];
/** HARMOVELA_SIM_SEEDS: how many histories. */
const LIVES = Number(process.env.HARMOVELA_SIM_SEEDS ?? 150);

/** The event that holds now, by subject and source. */
type Live = Map<string, string>;

function follower(tenant: string) {
  const tracker = createBeliefDecider(DEFAULT_BELIEF_SETTINGS);
  const claims = tracker.initial();
  const attester = createAttesterDecider(DEFAULT_ATTESTER_SETTINGS);
  const lineage = attester.initial();
  const checker = new BeliefDomain(new FindingSink(0), false);
  return {
    lose(entry: EventEntry) {
      tracker.observe?.(claims, "provenance", entry);
    },
    fold(entry: DomainEntry) {
      tracker.evolve(claims, entry);
      attester.observe?.(lineage, "beliefs", entry);
      check(checker, entry);
    },
    tracked(): Live {
      const live: Live = new Map();
      for (const [key, subject] of claims.tenants.get(tenant)?.subjects ?? []) {
        for (const [source, { event }] of subject.claims) live.set(`${key} ${source}`, event);
      }
      return live;
    },
    attested(): Live {
      const live: Live = new Map();
      for (const [key, said] of lineage.tenants.get(tenant)?.subjects ?? []) {
        for (const [source, { id }] of said) live.set(`${key} ${source}`, id);
      }
      return live;
    },
    standing: (id: string) => checker.standingOf(tenant, id),
  };
}

function isSameLive(one: Live, other: Live): boolean {
  return one.size === other.size && [...one].every(([claim, id]) => other.get(claim) === id);
}

function check(checker: BeliefDomain, entry: DomainEntry): void {
  const { seq, at, cause, tenant } = entry;
  const frame = { seq, subject: "", at, cause, digest: undefined, seen: new Map() };
  const owedBy = "owed" in cause ? cause.owed : undefined;
  if (entry.kind === "event") {
    const { envelope } = entry;
    // The event that ends a plan of an agent's is the agent's own word.
    const plan = { id: envelope.id, tenant, envelope, seq, subject: "", isAbandoned: false };
    const final = owedBy === envelope.id ? plan : undefined;
    checker.onEvent({ tenant, frame, envelope, owedBy, final });
  } else if (entry.kind === "begun") {
    checker.onBegun({ tenant, frame, envelope: entry.plan.envelope, owedBy, final: undefined });
  }
}

test(`tracker, attester and checker agree on what is live, in ${LIVES} histories`, () => {
  let compared = 0;
  let ended = 0;
  for (let seed = 1; seed <= LIVES; seed += 1) {
    const traffic = new BeliefTraffic(seed, ALL);
    traffic.run(40);
    const { tenant, log } = traffic.world;
    const services = follower(tenant);
    const said = new Set<string>();
    for (const [index, entry] of log.entries()) {
      for (const loss of traffic.losses) if (loss.after === index) services.lose(loss.entry);
      services.fold(entry);
      const tracked = services.tracked();
      const attested = services.attested();
      // Compared in words only where they differ: that takes long.
      const isSame = isSameLive(attested, tracked);
      if (!isSame) assert.deepEqual(attested, tracked, `seed ${seed}, entry ${entry.seq}`);
      const live = new Set(tracked.values());
      for (const id of live) {
        const standing = services.standing(id);
        assert.ok(standing === "live" || standing === "unsure", `seed ${seed}: ${id} ${standing}`);
        said.add(id);
      }
      for (const id of said) {
        if (live.has(id)) continue;
        assert.notEqual(services.standing(id), "live", `seed ${seed}: ${id} at ${entry.seq}`);
      }
      compared += live.size;
    }
    ended += said.size - new Set(services.tracked().values()).size;
  }
  assert.ok(compared > 100 * LIVES, `only ${compared} live assertions were compared`);
  assert.ok(ended > 3 * LIVES, `only ${ended} ended`);
});

/** A log of `beliefs` with these envelopes, as the tracker wrote it. */
function logOf(...envelopes: Envelope[]): DomainEntry[] {
  return given(createBeliefDecider(DEFAULT_BELIEF_SETTINGS), { at: NOW }).given(...envelopes).log;
}

function said(
  type: string,
  source: string,
  payload: JsonObject,
  more: Partial<Envelope>,
): Envelope {
  const created_at = new Date(NOW).toISOString();
  return { spec_version: "0.2", id: "", type, source, created_at, payload, ...more };
}

const fact = (source: string, id: string): Envelope =>
  said("memory.fact.added", source, { fact_id: "f", value: 1 }, { id });

const retraction = (source: string, id: string, causation_id: string): Envelope =>
  said(
    "memory.fact.invalidated",
    source,
    { fact_id: "f" },
    {
      id,
      causation_id,
      belief_status: "retracted",
    },
  );

function liveAfter(...envelopes: Envelope[]): string[] {
  const log = logOf(...envelopes);
  const services = follower(log[0]?.tenant ?? "");
  for (const entry of log) services.fold(entry);
  assert.deepEqual(services.attested(), services.tracked());
  return [...services.tracked().values()].sort();
}

test("of several that take back what has not come, the one who may is heard, in any order", () => {
  const own = retraction("agent:a", "r1", "late");
  const stranger = retraction("agent:b", "r2", "late");
  const system = retraction("memory:main", "r3", "late");
  const late = fact("agent:a", "late");
  for (const taken of [
    [own, stranger],
    [stranger, own],
    [stranger, system],
    [system, stranger],
  ]) {
    assert.deepEqual(liveAfter(...taken, late), []);
  }
  assert.deepEqual(liveAfter(stranger, late), ["late"]);
});

test("a system that names an older word of a source takes back what that source says now, and no more", () => {
  const said = [fact("agent:a", "a1"), fact("agent:b", "b1"), fact("agent:a", "a2")];
  assert.deepEqual(liveAfter(...said, retraction("memory:main", "r", "a1")), ["b1"]);
  assert.deepEqual(liveAfter(...said, retraction("agent:b", "r", "a1")), ["a2"]);
  assert.deepEqual(liveAfter(...said, retraction("memory:main", "r", "other")), []);
});
