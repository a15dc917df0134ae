/** Connecting: every form of credentials, TLS, permissions that leave an agent nothing but its own inbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BusAuth, type ConnectBusOptions, connectBus } from "@harmovela/bus";
import { freePort, type NatsServer, startNatsServer } from "@harmovela/testkit";
import { nkeys } from "@nats-io/transport-node";
import { makeCertificate } from "./make-certificate.ts";
import { mintOperator } from "./mint-creds.ts";

const one = new Uint8Array([1]);

/** Each of `good` may connect and reaches the server; each of `bad`, and nobody at all, is refused as typed. */
async function assertAdmits(
  server: NatsServer,
  good: BusAuth[],
  bad: Record<string, BusAuth | undefined>,
): Promise<void> {
  const options: ConnectBusOptions = { servers: server.url, name: "test" };
  for (const auth of good) {
    await using bus = await connectBus({ ...options, auth });
    await bus.flush();
    assert.equal(bus.isConnected, true);
    assert.equal(bus.serverVersion, server.version);
  }
  await assert.rejects(connectBus(options), { code: "unauthorized" }, "without credentials");
  for (const [what, auth] of Object.entries(bad)) {
    const attempt = connectBus({ ...options, ...(auth ? { auth } : {}) });
    await assert.rejects(attempt, { code: "unauthorized" }, what);
  }
}

test("where no server is, the connection is an error at once", async () => {
  const port = await freePort();
  const nowhere = { servers: `nats://127.0.0.1:${port}`, name: "test", connectTimeoutMs: 2_000 };
  await assert.rejects(connectBus(nowhere), { code: "connection_error" });
});

test("user and password", async () => {
  await using server = await startNatsServer({
    config: `authorization { users: [{ user: "u", password: "p" }] }`,
  });
  await assertAdmits(server, [{ user: "u", password: () => "p" }], {
    "wrong password": { user: "u", password: () => "wrong" },
    "wrong user": { user: "other", password: () => "p" },
    "another form": { token: () => "p" },
  });
});

test("token", async () => {
  await using server = await startNatsServer({ config: `authorization { token: "secret" }` });
  await assertAdmits(server, [{ token: () => "secret" }], {
    "wrong token": { token: () => "wrong" },
    "another form": { user: "u", password: () => "secret" },
  });
});

test("nkey", async () => {
  const user = nkeys.createUser();
  const stranger = nkeys.createUser();
  await using server = await startNatsServer({
    config: `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
  });
  await assertAdmits(server, [{ nkeySeed: () => user.getSeed() }], {
    "another key": { nkeySeed: () => stranger.getSeed() },
    "another form": { user: user.getPublicKey(), password: () => "p" },
  });
});

test("creds", async () => {
  const operator = mintOperator();
  await using server = await startNatsServer({ config: operator.config });
  const [own, foreign] = [operator.credsOf("agent"), mintOperator().credsOf("agent")];
  await assertAdmits(server, [{ creds: () => own }], {
    "of another operator": { creds: () => foreign },
    "another form": { token: () => "secret" },
  });
});

test("creds carry permissions", async () => {
  const operator = mintOperator();
  await using server = await startNatsServer({ config: operator.config });
  const creds = operator.credsOf("agent", {
    pub: { allow: ["free.>"] },
    sub: { allow: ["_INBOX.acme.a.>"] },
  });
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    auth: { creds: () => creds },
    inboxPrefix: "_INBOX.acme.a",
  });
  await assert.rejects(bus.request("free.a", {}, one, 5_000), { code: "no_service" });
  await assert.rejects(bus.request("closed.a", {}, one, 5_000), { code: "unauthorized" });
});

test("a secret that was renewed is asked for again at the next connect", async () => {
  const [before, after] = ["old", "new"].map((secret) => `authorization { token: "${secret}" }`);
  const port = await freePort();
  let secret = "old";
  let back = (): void => {};
  const reconnected = new Promise<void>((resolve) => {
    back = resolve;
  });
  const first = await startNatsServer({ port, config: before ?? "" });
  await using bus = await connectBus({
    servers: first.url,
    name: "test",
    auth: { token: () => secret },
    onChange: (change) => {
      if (change === "connected") back();
    },
  });
  await first[Symbol.asyncDispose]();
  secret = "new";
  await using second = await startNatsServer({ port, config: after ?? "" });
  await reconnected;
  await bus.flush();
  assert.equal(bus.isConnected, true);
  assert.equal(bus.serverVersion, second.version);
});

test("TLS with a certificate that is trusted, and none with one that is not", async () => {
  using certificate = makeCertificate();
  await using server = await startNatsServer({ config: certificate.config });
  const options = { servers: server.url, name: "test" };
  await using bus = await connectBus({ ...options, tls: { ca: certificate.pem } });
  await bus.flush();
  assert.equal(bus.isConnected, true);
  assert.equal(bus.nats.info?.tls_required, true);
  await assert.rejects(connectBus(options), { code: "connection_error" });
  await assert.rejects(connectBus({ ...options, tls: {} }), { code: "connection_error" });
  using other = makeCertificate();
  await assert.rejects(connectBus({ ...options, tls: { ca: other.pem } }), {
    code: "connection_error",
  });
});

test("whoever asks for TLS does not speak without it", async () => {
  await using server = await startNatsServer();
  await assert.rejects(connectBus({ servers: server.url, name: "test", tls: {} }), {
    code: "connection_error",
  });
});

test("what the server forbids is unauthorized, and the connection stays", async () => {
  await using server = await startNatsServer({
    config: `authorization { users: [
      { user: "u", password: "p", permissions: { publish: { allow: ["free.>", "_INBOX.>"] } } }
    ] }`,
  });
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    auth: { user: "u", password: () => "p" },
  });
  await assert.rejects(bus.request("closed.a", {}, one, 5_000), { code: "unauthorized" });
  await assert.rejects(bus.request("free.a", {}, one, 5_000), { code: "no_service" });
});

test("an agent that may listen to nothing but its own inbox gets its answers, and no others'", async () => {
  await using server = await startNatsServer({
    config: `authorization { users: [
      { user: "service", password: "p" },
      { user: "agent", password: "p", permissions: {
        publish: { allow: ["ask.>", "in.>"] },
        subscribe: { allow: ["_INBOX.acme.a.>"] }
      } }
    ] }`,
  });
  const as = (user: string, inboxPrefix?: string) =>
    connectBus({
      servers: server.url,
      name: user,
      auth: { user, password: () => "p" },
      ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    });
  await using service = await as("service");
  await service.provision({
    name: "IN",
    subjects: ["in.>"],
    maxAgeMs: 0,
    maxBytes: -1,
    maxMessageBytes: 1_000,
    replicas: 1,
  });
  const replies: string[] = [];
  service.subscribe("ask.>", (message) => {
    replies.push(message.reply);
    // Before the answer, so that whoever has the answer would have had this too.
    service.publish("_INBOX.acme.b.1", {}, one);
    service.publish("_INBOX.acme.a.news", {}, one);
    service.publish(message.reply, {}, one);
  });
  await service.flush();

  await using agent = await as("agent", "_INBOX.acme.a");
  const heard: string[] = [];
  for (const subject of ["_INBOX.acme.b.>", "_INBOX.>", "ask.>", "_INBOX.acme.a.news"]) {
    agent.subscribe(subject, (message) => heard.push(message.subject));
  }
  await agent.request("ask.a", {}, one, 5_000);
  assert.match(replies[0] ?? "", /^_INBOX\.acme\.a\../);
  assert.deepEqual(heard, ["_INBOX.acme.a.news"]);
  assert.deepEqual(await agent.store("in.a", {}, one), { stream: "IN", seq: 1 });

  // Under any other prefix it could not hear an answer: it is told so instead of waiting in vain.
  for (const prefix of [undefined, "_INBOX.acme.b"]) {
    await using lost = await as("agent", prefix);
    await assert.rejects(lost.request("ask.a", {}, one, 5_000), { code: "unauthorized" });
  }
});

test("waiting for the first connection ends when the server comes", async () => {
  const port = await freePort();
  const connecting = connectBus({
    servers: `nats://127.0.0.1:${port}`,
    name: "test",
    waitOnFirstConnect: true,
  });
  await using server = await startNatsServer({ port });
  await using bus = await connecting;
  assert.equal(bus.isConnected, true);
  assert.equal(bus.serverVersion, server.version);
});

test("replies go under the prefix that was asked for", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    inboxPrefix: "_INBOX.acme.agent:a.",
  });
  assert.match(bus.newInbox(), /^_INBOX\.acme\.agent:a\.[^.]+$/);
  let reply = "";
  bus.subscribe("ask", (message) => {
    reply = message.reply;
    bus.publish(message.reply, {}, one);
  });
  await bus.request("ask", {}, one, 5_000);
  assert.match(reply, /^_INBOX\.acme\.agent:a\./);
});
