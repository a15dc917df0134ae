/** What is refused before it is sent, and what is filled in. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Draft } from "../src/index.ts";
import { World } from "./world.ts";

describe("draft", () => {
  it("fills in the frame and leaves what is there", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent({ agent: "agent:a" });
    const before = Date.now();
    await world.run(
      agent.publish({ type: "agent.message.sent", payload: null, extra: { a: [1] } }),
    );
    const sent = JSON.parse(peer.arrivals[0]?.bytes ?? "") as Envelope;
    assert.equal(sent.spec_version, "0.2");
    assert.match(sent.id, /^evt_[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.equal(sent.source, "agent:a");
    assert.ok(Date.parse(sent.created_at) >= before);
    assert.equal(sent.payload, null);
    assert.deepEqual(sent.extra, { a: [1] });
    assert.equal("tenant_id" in sent, false);
  });

  it("stamps the tenant when one was given", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent({ tenant: "acme" });
    await world.run(agent.publish({ type: "agent.message.sent", payload: {} }));
    const sent = JSON.parse(peer.arrivals[0]?.bytes ?? "") as Envelope;
    assert.equal(sent.tenant_id, "acme");
  });

  it("N1 keys named __proto__ and constructor travel as they are and change nothing", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent();
    const text = '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}}}';
    await world.run(
      agent.publish({
        ...(JSON.parse('{"__proto__":{"y":1}}') as object),
        type: "task.progress",
        task_id: "__proto__",
        payload: JSON.parse(text),
      }),
    );
    const sent = peer.arrivals[0]?.bytes ?? "";
    assert.ok(sent.includes(`"payload":${text}`));
    assert.equal(({} as { isAdmin?: boolean }).isAdmin, undefined);
    assert.equal(({} as { y?: number }).y, undefined);
  });

  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  let deep: unknown = 1;
  for (let i = 0; i < 20_000; i++) deep = [deep];
  const message = (more: Record<string, unknown>): Draft =>
    ({ type: "agent.message.sent", payload: {}, ...more }) as Draft;

  for (const [what, draft, code] of [
    ["a cycle", message({ payload: cycle }), "invalid_envelope"],
    ["a BigInt", message({ payload: 1n }), "invalid_envelope"],
    ["deep nesting", message({ payload: deep }), "invalid_envelope"],
    ["too many bytes", message({ payload: "x".repeat(600_000) }), "invalid_envelope"],
    ["no payload", message({ payload: undefined }), "invalid_envelope"],
    ["a lone surrogate", message({ payload: "\ud800" }), "invalid_envelope"],
    ["an id of 129 bytes", message({ id: "x".repeat(129) }), "invalid_envelope"],
    ["a line break in an id", message({ task_id: "\r\nPUB x 0" }), "invalid_envelope"],
    ["a derived id", message({ id: `hv_${"0".repeat(26)}` }), "invalid_envelope"],
    ["another source", message({ source: "agent:other" }), "unauthorized"],
    ["another tenant", message({ tenant_id: "other" }), "unauthorized"],
    ["another version", message({ spec_version: "9.9" }), "unsupported_version"],
    ["an unknown type", message({ type: "no.such.type" }), "unknown_event_type"],
    ["no form of a type", message({ type: "No" }), "invalid_event_type"],
    ["a bad payload", { type: "belief.revised", payload: {} }, "invalid_envelope"],
    [
      "two task ids",
      { type: "task.progress", task_id: "a", payload: { task_id: "b" } },
      "invalid_envelope",
    ],
    ["an impossible date", message({ created_at: "2026-02-30T00:00:00Z" }), "invalid_envelope"],
  ] as const) {
    it(`refuses ${what} before it is sent`, async () => {
      await using world = new World();
      const peer = await world.peer();
      const { agent } = world.agent({ tenant: "acme" });
      await assert.rejects(world.run(agent.publish(draft)), (error) => {
        assert.ok(error instanceof HarmovelaError);
        assert.equal(error.code, code);
        assert.equal(error.retry, "never");
        return true;
      });
      assert.equal(agent.outstanding, 0);
      assert.equal(peer.arrivals.length, 0);
    });
  }

  it("sends it all the same when it is told to, under its own name", async () => {
    await using world = new World();
    const peer = await world.peer();
    const { agent } = world.agent();
    const draft = message({ id: "evt_1", source: "agent:other", spec_version: "9.9" });
    await world.run(agent.publish(draft, { validate: false }));
    assert.equal(peer.arrivals.length, 1);
  });

  it("a name that is no id makes no agent", () => {
    const world = new World();
    for (const options of [
      { agent: "" },
      { agent: "a\nb" },
      { tenant: "x".repeat(129) },
      { tenant: "-" },
    ])
      assert.throws(
        () => world.agent(options),
        (error) => error instanceof HarmovelaError && error.code === "invalid_argument",
      );
  });
});
