/** Liveness of sessions through the host: live heartbeats, judged envelopes, and a fresh window after a take-over. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { liveSubject } from "@harmovela/bus";
import type { Decider } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import { envelope, eventually, openCounter, openSender, TENANT } from "./harness.ts";

const encoder = new TextEncoder();

/** Watches the session `s` of every agent; what it heard is seen through `owed`. */
function watching(heard: (lastHeard: number | undefined, since: number) => void) {
  const base = createCounterDecider();
  const decider: Decider<CounterState> = {
    ...base,
    watches: (_state, _tenant, _source, sessionId) => sessionId === "s",
    owed: (state, now, underWay) => {
      const { heartbeats } = underWay;
      if (heartbeats !== undefined) {
        heard(heartbeats.lastHeard(TENANT, "agent:a", "s"), heartbeats.sinceOf(TENANT));
      }
      return base.owed(state, now, underWay);
    },
  };
  return decider;
}

describe("heartbeats", () => {
  test("the live subject and judged envelopes are signs of life; what names another sender is not", async () => {
    await using server = await startNatsServer();
    let last: number | undefined;
    let since = 0;
    await using counter = await openCounter(server.url, {
      decider: watching((lastHeard, begun) => {
        last = lastHeard;
        since = begun;
      }),
    });
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const look = () => sender.send(envelope("task.progress", { source: "agent:b" }));
    await look();
    assert.equal(last, undefined);
    assert.ok(since > 0);
    const beat = encoder.encode(
      JSON.stringify(envelope("session.heartbeat", { payload: { session_id: "s" } })),
    );
    const live = (source: string, data: Uint8Array) =>
      sender.bus.publish(
        liveSubject({ tenant: TENANT, source, type: "session.heartbeat" }),
        {},
        data,
      );
    live("agent:b", beat);
    live("agent:a", encoder.encode("{"));
    await sender.bus.flush();
    await look();
    assert.equal(last, undefined, "heard from somebody else");
    live("agent:a", beat);
    await sender.bus.flush();
    const first = await eventually(async () => {
      await look();
      return last;
    });
    await sender.send(envelope("task.progress", { session_id: "s" }));
    const second = await eventually(async () => {
      await look();
      return last !== undefined && last > first ? last : undefined;
    });
    assert.ok(second >= first);
    const intake = await sender.bus.streamState("HV_IN_TASKS");
    assert.equal(
      intake?.lastSeq,
      counter.host.status().intake,
      "a live heartbeat is not stored anywhere",
    );
  });

  test("after a take-over nobody was heard and everybody has a full window", async () => {
    await using server = await startNatsServer();
    const seen: { lastHeard: number | undefined; since: number }[] = [];
    const decider = watching((lastHeard, since) => seen.push({ lastHeard, since }));
    await using sender = await openSender(server.url);
    {
      await using first = await openCounter(server.url, { decider });
      await first.host.untilLeading();
      await sender.send(envelope("task.progress", { session_id: "s" }));
      await eventually(() => (seen.at(-1)?.lastHeard === undefined ? undefined : true));
    }
    const before = seen.at(-1);
    await using second = await openCounter(server.url, { decider });
    await second.host.untilLeading();
    await sender.send(envelope("task.progress", { source: "agent:b" }));
    const after = seen.at(-1);
    assert.equal(after?.lastHeard, undefined);
    assert.ok((after?.since ?? 0) >= (before?.lastHeard ?? 0));
  });
});
