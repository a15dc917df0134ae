/** Windows and their end (spec 6.2; section 11, C26); field cases K1, K5, K11. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import {
  against,
  derived,
  event,
  type Fields,
  fact,
  iso,
  NOW,
  payloadOf,
  read,
  retract,
  type World,
  windowChanged,
  world,
} from "./support.ts";

const KEY = "memory:t";
const MINUTE = 60_000;

/** Nothing a millisecond before, exactly one expiry at the time, none after. */
function expiresAt(scenario: World, due: number): JsonObject {
  assert.deepEqual(derived(scenario, due - 1), []);
  assert.deepEqual(scenario.owed(), { wakeAt: due });
  assert.ok(!against(scenario, { key: KEY }).includes("stale"), "fresh a millisecond before");
  const [expired, ...more] = derived(scenario, due);
  assert.deepEqual(more, []);
  assert.equal(expired?.type, "freshness.expired");
  assert.ok(against(scenario, { key: KEY }).includes("stale"), "stale from its end on");
  assert.deepEqual(derived(scenario, due + 1e9), []);
  return payloadOf(expired);
}

describe("the end of a window", () => {
  test("K5 is told once, with its fields in both places", () => {
    const said = fact("t", 1, {
      valid_until: iso(NOW + MINUTE),
      refresh_hint: "https://example.org/t",
      tenant_id: "acme",
    });
    const scenario = world().given(said);
    derived(scenario, NOW + MINUTE - 1);
    const [expired, ...more] = derived(scenario, NOW + MINUTE);
    assert.deepEqual(more, []);
    assert.ok(expired);
    const until = iso(NOW + MINUTE);
    assert.deepEqual(expired, {
      ...expired,
      type: "freshness.expired",
      source: "service:belief-tracker",
      created_at: until,
      causation_id: said.id,
      tenant_id: "acme",
      valid_from: iso(NOW),
      valid_until: until,
      refresh_hint: "https://example.org/t",
      payload: {
        resource: KEY,
        source: "agent:a",
        cached_at: iso(NOW),
        valid_until: until,
        detected_at: until,
      },
    });
    assert.deepEqual(against(scenario, { key: KEY }), ["stale"]);
    assert.equal(read(scenario, "stale", {}).total, 1);
  });

  // K1: calendar units from `created_at` in UTC; a month is a month and a minute a minute.
  const spans: [string, string, string][] = [
    ["PT1M", "2026-01-31T10:00:00.000Z", "2026-01-31T10:01:00.000Z"],
    ["P1M", "2026-01-31T10:00:00.000Z", "2026-02-28T10:00:00.000Z"],
    ["P1W", "2026-11-30T10:00:00.000Z", "2026-12-07T10:00:00.000Z"],
    ["P3W3D", "2026-11-30T10:00:00.000Z", "2026-12-24T10:00:00.000Z"],
    ["PT36H", "2026-11-30T10:00:00.000Z", "2026-12-01T22:00:00.000Z"],
    ["P1Y", "2028-02-29T10:00:00.000Z", "2029-02-28T10:00:00.000Z"],
    ["PT0.5S", "2026-11-30T10:00:00.000Z", "2026-11-30T10:00:00.500Z"],
  ];
  for (const [span, created, end] of spans) {
    test(`K1 ${span} after ${created} is ${end}`, () => {
      const scenario = world().at(Date.parse(created));
      scenario.given(fact("t", 1, { stale_after: span, created_at: created }));
      expiresAt(scenario, Date.parse(end));
    });
  }

  const bounds: [Fields, number][] = [
    [{ valid_until: iso(NOW + 2000), stale_after: "PT3S" }, 2000],
    [{ valid_until: iso(NOW + 3000), stale_after: "PT2S" }, 2000],
    [{ stale_after: "PT2S", created_at: iso(NOW - 1000) }, 1000],
  ];
  for (const [fields, after] of bounds) {
    test(`the earliest bound of ${JSON.stringify(fields)} governs`, () => {
      expiresAt(world().given(fact("t", 1, fields)), NOW + after);
    });
  }

  test("P0D, and what is over on arrival: recorded as stale, told once, never refused", () => {
    for (const fields of [{ stale_after: "P0D" }, { valid_until: "2020-01-01T00:00:00Z" }]) {
      const scenario = world().given(fact("t", 1, fields));
      assert.deepEqual(against(scenario, { key: KEY }), ["stale"]);
      const said = derived(scenario);
      assert.deepEqual(
        said.map((envelope) => [envelope.type, payloadOf(envelope).detected_at]),
        [["freshness.expired", iso(NOW)]],
      );
      assert.deepEqual(derived(scenario, NOW + 1e9), []);
    }
  });

  test("said again in time it begins anew; what is withdrawn does not expire", () => {
    const until = (ms: number): Fields => ({ valid_until: iso(NOW + ms) });
    const scenario = world().given(fact("t", 1, until(1000)), fact("u", 1, until(1000)));
    scenario.given(fact("t", 1, until(2000)), retract("u"));
    expiresAt(scenario, NOW + 2000);
    assert.equal(scenario.state.windows.size, 0);
  });

  test("said again after it: fresh, and a window of its own", () => {
    const scenario = world().given(fact("t", 1, { stale_after: "PT1S" }));
    derived(scenario, NOW + 1000);
    scenario.given(fact("t", 1, { created_at: iso(NOW + 1000), stale_after: "PT1S" }));
    assert.deepEqual(against(scenario, { key: KEY }), []);
    assert.equal(read(scenario, "stale", {}).total, 0);
    expiresAt(scenario, NOW + 2000);
  });

  test("of several claims on one subject that end together is told once", () => {
    const fields = { valid_until: iso(NOW + 1000) };
    const first = fact("t", 1, fields);
    const second = fact("t", 1, { ...fields, source: "agent:b" });
    const scenario = world().given(first, second, fact("u", 1, fields));
    scenario.given(fact("t", 1, { valid_until: iso(NOW + 2000), source: "agent:c" }));
    const [expired, other, ...more] = derived(scenario, NOW + 1000);
    assert.deepEqual(more, []);
    assert.equal(payloadOf(other).resource, "memory:u");
    assert.equal(expired?.causation_id, first.id);
    assert.deepEqual(payloadOf(expired).claims, [
      { source: "agent:a", event_id: first.id },
      { source: "agent:b", event_id: second.id },
    ]);
    assert.equal(payloadOf(expired).claim_count, 2);
    assert.equal(read(scenario, "stale", {}).total, 3);
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:b" }), ["stale"]);
    assert.deepEqual(against(scenario, { key: KEY }), [], "one still holds");
    expiresAt(scenario, NOW + 2000);
  });

  test("many that end together are told of once; some are listed, all counted", () => {
    const scenario = world();
    const fields = { valid_until: iso(NOW + 1000) };
    for (let at = 0; at < 30; at += 1) {
      scenario.given(fact("t", 1, { ...fields, source: `agent:${at}` }));
    }
    const payload = expiresAt(scenario, NOW + 1000);
    assert.equal((payload.claims as JsonObject[]).length, 20);
    assert.equal(payload.claim_count, 30);
  });

  const late: [string, (scenario: World, fields: Fields) => World][] = [
    ["by its source", (scenario, fields) => scenario.given(fact("t", 2, fields))],
    [
      "by another",
      (scenario, fields) => scenario.given(fact("t", 1, { ...fields, source: "agent:b" })),
    ],
    [
      "after it was taken back",
      (scenario, fields) => scenario.given(retract("t"), fact("t", 1, fields)),
    ],
  ];
  for (const [how, said] of late) {
    test(`what has ended is told once, also when it is said again ${how}`, () => {
      const fields = { valid_until: iso(NOW + 1000) };
      const scenario = world().given(fact("t", 1, fields));
      derived(scenario, NOW + 1000);
      said(scenario.wait(1), fields);
      assert.deepEqual(derived(scenario), []);
      assert.deepEqual(against(scenario, { key: KEY }), ["stale"]);
      assert.ok(Number(read(scenario, "stale", {}).total) >= 1);
      const [another] = derived(said(scenario, { valid_until: iso(NOW + 999) }));
      assert.equal(another?.valid_until, iso(NOW + 999), "another end is told");
    });
  }

  test("an expiry that somebody else tells of changes nothing", () => {
    const scenario = world().given(
      fact("t", 1, { valid_until: iso(NOW + 1000) }),
      event("freshness.expired", { resource: KEY }, { valid_until: iso(NOW), source: "runtime:x" }),
    );
    expiresAt(scenario, NOW + 1000);
  });

  test("one that cannot be written is given up", () => {
    const scenario = world()
      .given(fact("t", 1, { valid_until: iso(NOW + 1000) }))
      .wait(1000);
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    scenario.fail(owed.event.id);
    assert.equal(scenario.owed(), undefined);
  });
});

describe("K11 a window that is changed", () => {
  const at = (time: string): number => Date.parse(`2026-11-30T${time}:00Z`);
  function claimed(fields: Fields = {}): World {
    const created = { created_at: iso(at("09:00")), valid_until: iso(at("10:00")) };
    return world()
      .at(at("09:00"))
      .given(fact("t", 1, { ...created, ...fields }));
  }
  const changed = (to: string, sent: string, more: JsonObject = {}, fields: Fields = {}) =>
    windowChanged(
      KEY,
      { new_valid_until: iso(at(to)), ...more },
      { created_at: iso(at(sent)), ...fields },
    );

  test("shortened into the past it ends at once; extended it is fresh again and ends once more", () => {
    const scenario = claimed().at(at("09:40"));
    const shorter = changed("09:30", "09:40", { previous_valid_until: iso(at("10:00")) });
    scenario.when(shorter).accepted({ applied: true });
    assert.deepEqual(against(scenario, { key: KEY }), ["stale"]);
    const [expired] = derived(scenario);
    assert.equal(payloadOf(expired).valid_until, iso(at("09:30")));
    assert.equal(payloadOf(expired).changed_by, shorter.id);
    scenario.at(at("09:45"));
    const longer = changed("11:00", "09:45", { previous_valid_until: iso(at("09:30")) });
    scenario.when(longer).accepted({ applied: true });
    assert.deepEqual(against(scenario, { key: KEY }), []);
    expiresAt(scenario, at("11:00"));
  });

  test("shortened to an end that was told of, after it was fresh again, it ends once more", () => {
    const scenario = claimed();
    scenario.given(fact("t", 1, { source: "agent:b", valid_until: iso(at("10:00")) }));
    assert.equal(derived(scenario, at("10:00")).length, 1);
    scenario.at(at("10:10")).given(changed("11:00", "10:10"), changed("10:00", "10:10"));
    assert.equal(derived(scenario).length, 1);
    scenario.given(changed("10:00", "10:10"));
    assert.deepEqual(derived(scenario), [], "no other end");
  });

  test("out of order the newer decision stays, and the late one is flagged", () => {
    const scenario = claimed().at(at("09:45")).given(changed("11:00", "09:45"));
    const late = changed("09:30", "09:40", { previous_valid_until: iso(at("10:00")) });
    scenario.when(late).accepted({
      applied: false,
      flags: ["late", "previous_valid_until_mismatch"],
    });
    expiresAt(scenario, at("11:00"));
  });

  test("a wrong previous end is flagged, there too, and the newer decision counts", () => {
    const scenario = claimed();
    const wrong = changed("10:30", "09:01", { previous_valid_until: iso(at("09:59")) });
    const flags = ["previous_valid_until_mismatch"];
    scenario.when(wrong).accepted({ applied: true, flags });
    assert.deepEqual(read(scenario, "get", { key: KEY }).window_changed, {
      event_id: wrong.id,
      flags,
    });
    expiresAt(scenario, at("10:30"));
  });

  test("of two of one time the later entry counts", () => {
    const scenario = claimed().given(changed("10:30", "09:01"), changed("10:20", "09:01"));
    expiresAt(scenario, at("10:20"));
  });

  test("the span after which it is stale still bounds it", () => {
    const scenario = claimed({ stale_after: "PT90M" }).given(changed("11:00", "09:01"));
    expiresAt(scenario, at("10:30"));
  });

  test("a decision that is older than the claim is late; one without an end changes nothing", () => {
    const scenario = claimed();
    scenario
      .when(changed("10:30", "08:59"))
      .accepted({ applied: false, flags: ["late"] })
      .when(windowChanged(KEY, {}, { created_at: iso(at("09:01")) }))
      .accepted({ applied: false, flags: ["without_end"] })
      .when(windowChanged("memory:none", {}))
      .accepted({ applied: false, flags: ["unknown_resource"] });
    expiresAt(scenario, at("10:00"));
  });

  test("by the asserting side only: its source, or the system of the subject", () => {
    const scenario = claimed();
    scenario.when(changed("10:30", "09:01", {}, { source: "agent:b" })).rejected("unauthorized");
    scenario.when(changed("10:30", "09:01", {}, { source: "context:c" })).rejected("unauthorized");
    scenario.when(changed("10:30", "09:01", {}, { source: "memory:m" })).accepted();
    expiresAt(scenario, at("10:30"));
  });
});

test("a hundred thousand windows are one heap, and each ends once", () => {
  const scenario = world();
  const count = 100_000;
  for (let at = 0; at < count; at += 1) {
    scenario.judge(fact(`f${at}`, at, { valid_until: iso(NOW + 1 + ((at * 7919) % 5000)) }));
  }
  assert.equal(scenario.state.windows.size, count);
  const ids = new Set(derived(scenario, NOW + 5000).map(({ id }) => id));
  assert.equal(ids.size, count);
  assert.equal(scenario.state.windows.size, 0);
});
