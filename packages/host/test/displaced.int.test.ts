/** T4: a leader that was displaced while it had nothing to write finds out by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startNatsServer } from "@harmovela/testkit";
import { altered } from "./altered.ts";
import { envelope, eventually, openCounter, openSender } from "./harness.ts";

test("an idle leader whose lease went on without it notices who leads now", async () => {
  await using server = await startNatsServer();
  await using blind = await openCounter(server.url, {
    instance: "blind",
    around: (bus) =>
      altered(bus, {
        // It takes the lease once and never hears of it again.
        openLease: (options) => {
          queueMicrotask(options.onAcquired);
          return { isHeld: true, close: async () => {} };
        },
      }),
  });
  await blind.host.untilLeading();
  assert.equal(blind.host.status().counters.refolds, 0);
  await using other = await openCounter(server.url, { instance: "other" });
  await other.host.untilLeading();
  await eventually(() => (blind.host.status().counters.refolds === 0 ? undefined : true));
  await using sender = await openSender(server.url);
  const verdict = await sender.send(envelope("task.progress"));
  assert.equal(verdict.type, "event.acknowledged");
});
