import assert from "node:assert/strict";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { authFromFile } from "@harmovela/bus";
import { type GrantRecord, openGrants } from "@harmovela/host";
import { CommandFailure } from "../src/command-failure.ts";
import { type Candidate, enrol, keyFile, strike } from "../src/identity/enrol.ts";
import { grantsFileOf } from "../src/identity/grants-file.ts";
import { readIdentities } from "../src/identity/identity-file.ts";
import { accountsOf } from "../src/identity/server-accounts.ts";
import { createProgram } from "../src/program.ts";

let folder: string;
let config: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "harmovela-identity-"));
  config = join(folder, "agents.conf");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const agent = (name: string, tenant = "acme"): Candidate => ({
  identity: { kind: "agent", tenant, name },
  file: [tenant, name],
});
const isFailure = (text: RegExp) => (error: unknown) =>
  error instanceof CommandFailure && text.test(error.message);

describe("a key for somebody", () => {
  test("the secret is the owner's alone, the server's file holds the public half", () => {
    const [secret = ""] = enrol(config, [agent("agent:worker")]);
    assert.equal(statSync(secret).mode & 0o777, 0o600);
    assert.ok("nkeySeed" in authFromFile(secret));
    const seed = readFileSync(secret, "utf8").trim();
    const text = readFileSync(config, "utf8");
    assert.equal(text.includes(seed), false);
    const [known] = readIdentities(config);
    assert.match(known?.key ?? "", /^U[A-Z2-7]{55}$/);
    assert.ok(text.includes(`"nkey": "${known?.key}"`));
  });

  test("no secret is overwritten, and the server's file stays as it was", () => {
    writeFileSync(join(folder, keyFile(["acme", "agent:worker"])), "precious");
    enrol(config, [agent("agent:other")]);
    const before = readFileSync(config, "utf8");
    assert.throws(() => enrol(config, [agent("agent:worker")]), isFailure(/no key is overwritten/));
    assert.equal(readFileSync(config, "utf8"), before);
    assert.equal(readFileSync(join(folder, "acme.agent:worker.nk"), "utf8"), "precious");
  });

  test("of several keys all are made or none", () => {
    writeFileSync(join(folder, keyFile(["acme", "b"])), "precious");
    assert.throws(() => enrol(config, [agent("a"), agent("b")]), isFailure(/b\.nk/));
    assert.deepEqual(readdirSync(folder), ["acme.b.nk"], "no grants either");
  });

  test("who has one gets no second, as an observer neither; another tenant's may", () => {
    enrol(config, [agent("agent:worker")]);
    const observer: Candidate = {
      identity: { kind: "observer", tenant: "acme", name: "agent:worker" },
      file: ["x"],
    };
    for (const again of [agent("agent:worker"), observer]) {
      assert.throws(() => enrol(config, [again]), isFailure(/has a key/));
    }
    enrol(config, [agent("agent:worker", "beta")]);
    assert.equal(readIdentities(config).length, 2);
  });

  test("names that run together in words are two, and lead to no other folder", () => {
    enrol(config, [agent("b c", "a"), agent("c", "a b"), agent("../../x")]);
    assert.equal(readIdentities(config).length, 3);
    assert.equal(existsSync(join(folder, "acme.%2E%2E%2F%2E%2E%2Fx.nk")), true);
  });

  test("one command at a time", () => {
    writeFileSync(`${config}.new`, "");
    assert.throws(() => enrol(config, [agent("a")]), isFailure(/another command is at work/));
    assert.deepEqual(readdirSync(folder), ["agents.conf.new"]);
  });

  test("who is struck off is gone from the file; nobody is an error", () => {
    enrol(config, [agent("a"), agent("b")]);
    const [a] = readIdentities(config);
    strike(config, "a", (one) => "tenant" in one && one.name === "a");
    assert.equal(readFileSync(config, "utf8").includes(a?.key ?? "none"), false);
    assert.throws(() => strike(config, "a", () => false), isFailure(/knows no a/));
  });

  test("a file of somebody else is not taken, and a damaged line is named", () => {
    writeFileSync(config, "accounts { mine { users = [] } }\n");
    assert.throws(() => enrol(config, [agent("a")]), isFailure(/was not written by this command/));
    rmSync(config);
    enrol(config, [agent("a")]);
    const text = readFileSync(config, "utf8");
    for (const bad of ['{"kind":"root","key":"U"}', '{"kind":"agent"}', "nonsense", "null"]) {
      writeFileSync(config, text.replace(/#: .*/, `#: ${bad}`));
      assert.throws(() => readIdentities(config), isFailure(/agents\.conf:3: /));
    }
  });
});

describe("the accounts of a server", () => {
  const key = "U".padEnd(56, "A");

  test("who may publish nothing is told so: an empty list would allow everything", () => {
    const scopes = ["subscribe:task.*"];
    const { TENANT_acme } = accountsOf([{ kind: "agent", tenant: "acme", name: "a", key, scopes }]);
    const [user] = (TENANT_acme?.users ?? []) as { permissions: { publish: unknown } }[];
    assert.deepEqual(user?.permissions.publish, { deny: [">"] });
  });

  test("each tenant has one, and only what is its own passes its border", () => {
    const accounts = accountsOf([
      { kind: "agent", tenant: "acme", name: "a", key },
      { kind: "observer", tenant: "acme", name: "b", key },
      { kind: "agent", tenant: "*", name: "a", key },
      { kind: "operator", name: "operator", key },
    ]);
    assert.deepEqual(Object.keys(accounts), ["HARMOVELA", "TENANT_acme", "TENANT_%2A"]);
    assert.equal(accounts.TENANT_acme?.jetstream, undefined);
    assert.equal(accounts.TENANT_acme?.users.length, 2);
    for (const [name, token] of [
      ["TENANT_acme", "acme"],
      ["TENANT_%2A", "%2A"],
    ] as const) {
      const subjects = JSON.stringify(accounts[name]?.imports).match(/"subject":"[^"]*"/g);
      assert.deepEqual(subjects, [
        `"subject":"hv.${token}.in.>"`,
        `"subject":"hv.${token}.rpc.>"`,
        `"subject":"hv.${token}.ev.>"`,
        `"subject":"_INBOX.${token}.>"`,
      ]);
    }
  });
});

describe("the commands", () => {
  const run = (...words: string[]) =>
    createProgram().parseAsync([...words, "--config", config], { from: "user" });

  test("an agent and the services are added, listed and removed", async () => {
    await run("agent", "add", "agent:worker", "--tenant", "acme");
    await run("agent", "add", "agent:eye", "--tenant", "acme", "--observer");
    for (const domain of ["tasks", "beliefs", "interruptions", "operator"])
      await run("service", "add", domain);
    await run("agent", "list");
    const kinds = readIdentities(config).map(({ kind }) => kind);
    const services = Array.from({ length: 6 }, () => "service");
    assert.deepEqual(kinds, ["agent", "observer", ...services, "operator"]);
    assert.equal(existsSync(join(folder, "service.tasks.writer.nk")), true);
    await run("agent", "remove", "agent:worker", "--tenant", "acme");
    for (const domain of ["tasks", "operator"]) await run("service", "remove", domain);
    assert.equal(readIdentities(config).length, 5);
  });

  test("the list as JSON is one object a line, without a secret", async (context) => {
    await run("agent", "add", "agent:clerk", "--tenant", "acme", "--scope", "write:tasks");
    const written: string[] = [];
    const write = (text: string) => written.push(text) > 0;
    const printer = context.mock.method(process.stdout, "write", write as never);
    await run("agent", "list", "--json");
    printer.mock.restore();
    const lines = written.filter((text) => text.includes('"kind"')).join("");
    const [clerk, ...others] = lines.trim().split("\n");
    assert.deepEqual(others, []);
    const { key, ...said } = JSON.parse(clerk ?? "");
    assert.match(key, /^U[A-Z2-7]{55}$/);
    const scopes = ["write:tasks"];
    assert.deepEqual(said, { kind: "agent", tenant: "acme", name: "agent:clerk", scopes });
  });

  const grants = () =>
    (JSON.parse(readFileSync(grantsFileOf(config), "utf8")) as { grants: GrantRecord[] }).grants;

  test("roles and scopes stand in the server's file and in that of the services, and go together", async () => {
    const scopes = ["write:tasks", "subscribe:task.*"];
    await run(
      ...["agent", "add", "agent:clerk", "--tenant", "acme", "--role", "publisher"],
      ...["--scope", "write:tasks", "--scope", "subscribe:task.*"],
    );
    await run("agent", "add", "agent:eye", "--tenant", "acme", "--observer");
    await run("agent", "add", "agent:free", "--tenant", "acme");
    await run("service", "add", "operator");
    const clerk = { tenant: "acme", agent: "agent:clerk", roles: ["publisher"], scopes };
    const expected = [
      clerk,
      { tenant: "acme", agent: "agent:eye", scopes: ["read:*", "subscribe:*"] },
      { tenant: "acme", agent: "agent:free" },
      { agent: "agent:cli" },
    ];
    assert.deepEqual(grants(), expected);
    openGrants(grants());
    const server = readFileSync(config, "utf8");
    assert.equal(server.includes("hv.acme.in.beliefs.agent:clerk"), false);
    await run("agent", "list");
    await run("agent", "remove", "agent:clerk", "--tenant", "acme");
    assert.deepEqual(grants(), expected.slice(1));
  });

  test("a scope or role that nobody knows makes no key", async () => {
    for (const [option, value] of [
      ["--scope", "wirte"],
      ["--scope", "write:task"],
      ["--scope", "subscribe:task.>"],
      ["--role", "root"],
    ] as const) {
      await assert.rejects(run("agent", "add", "agent:a", option, value), CommandFailure);
    }
    assert.equal(existsSync(config), false);
  });

  test("nobody is an agent under the name of a service, or under none", async () => {
    for (const name of ["service:x", "", "a".repeat(129)]) {
      await assert.rejects(run("agent", "add", name), isFailure(/name/));
    }
    assert.equal(existsSync(config), false);
  });
});
