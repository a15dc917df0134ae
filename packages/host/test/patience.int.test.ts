/** A service that is started before its streams can be looked at. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectBus, intakeStreamSpec } from "@harmovela/bus";
import { openService, type ServiceConfig, type ServiceDefinition } from "@harmovela/host";
import { startNatsCluster, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { COUNTER_SERVICE, type CounterState, createCounterDecider } from "./counter-decider.ts";

const definition: ServiceDefinition<CounterState> = {
  domain: "tasks",
  service: COUNTER_SERVICE,
  decider: createCounterDecider(),
  settings: {},
  observes: [],
  reads: {},
};

function config(servers: string[], onLine: (line: string) => void = () => {}): ServiceConfig {
  const logger = pino({ level: "warn" }, { write: onLine });
  return { servers, version: "0.1.0", logger, waitOnFirstConnect: true };
}

test("while a cluster cannot agree on anything a service waits, and leads when it can", async () => {
  await using cluster = await startNatsCluster();
  const [one, ...others] = [...cluster.servers.values()];
  await Promise.all(others.map((server) => server.kill()));
  let onWarned = (): void => {};
  const warned = new Promise<void>((resolve) => {
    onWarned = resolve;
  });
  const opened = openService(definition, {
    ...config([one?.url ?? ""], (line) => {
      if (line.includes("the streams cannot be looked at yet")) onWarned();
    }),
    replicas: 3,
  });
  await Promise.race([warned, opened]);
  await Promise.all(others.map((server) => server.restart()));
  const service = await opened;
  await service.host.untilLeading();
  await service.close();
});

test("what waiting does not change is an error at once", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision({ ...intakeStreamSpec("tasks"), maxAgeMs: 60_000 });
  await assert.rejects(openService(definition, config([server.url])), { code: "stream_mismatch" });
});

test("so is an account without JetStream", async () => {
  const accounts = "accounts { PLAIN { users: [{ user: plain, password: plain }] } }";
  await using server = await startNatsServer({ config: `${accounts}\nno_auth_user: plain` });
  await assert.rejects(openService(definition, config([server.url])), { code: "append_refused" });
});

test("so are credentials without settings that say that senders are proved", async () => {
  const unproved = { ...definition, settings: { authenticated: false } };
  const auth = { user: "a", password: () => "a" };
  const opened = openService(unproved, { ...config(["nats://127.0.0.1:1"]), writerAuth: auth });
  await assert.rejects(opened, { code: "invalid_argument" });
});
