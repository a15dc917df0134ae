/** T4: a leader that was displaced while it had nothing to write finds out by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { logStream } from "@harmovela/bus";
import { generateTokenKeys, openTokenKeys } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import { altered } from "./altered.ts";
import { ask, envelope, eventually, openCounter, openSender } from "./harness.ts";

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

test("a token that is recorded while an idle leader looks at its log is no loss of the log", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const issue = {
    jti: "t1",
    tenant: "acme",
    iss: "agent:a",
    sub: "agent:b",
    task_id: "t",
    iat: 1,
    exp: 2,
  };
  let looks = 0;
  let isArmed = false;
  await using counter = await openCounter(server.url, {
    tokens: await openTokenKeys(await generateTokenKeys()),
    issueToken: () => ({ issue }),
    around: (bus) =>
      altered(bus, {
        // What the server answered is older than what is stored when the leader gets it.
        streamState: async (stream) => {
          const state = await bus.streamState(stream);
          if (stream !== logStream("tasks")) return state;
          if (isArmed) {
            isArmed = false;
            const { result } = await ask(sender, "token");
            assert.ok(result);
          }
          looks += 1;
          return state;
        },
      }),
  });
  await counter.host.untilLeading();
  isArmed = true;
  const before = looks;
  await eventually(() => (looks > before + 1 ? true : counter.host.status().failure));
  assert.equal(counter.host.status().failure, undefined);
  const verdict = await sender.send(envelope("task.progress"));
  assert.equal(verdict.type, "event.acknowledged");
});
