import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { FakeClock } from "@harmovela/testkit";
import { grantsOf, NO_REGISTRY } from "../src/grants.ts";
import { ConfigError, openGrants, openGrantsFile, readConfig } from "../src/index.ts";

const isUnusable = (text: RegExp) => (error: unknown) =>
  error instanceof HarmovelaError && error.code === "invalid_argument" && text.test(error.message);

describe("a registry of grants", () => {
  test("no scopes named is everything, who is not named is nobody, a tenant of its own goes first", () => {
    const grants = openGrants([
      { tenant: "acme", agent: "agent:a", roles: ["viewer"] },
      { agent: "agent:cli" },
      { tenant: "acme", agent: "agent:cli", scopes: [] },
    ]);
    assert.deepEqual(grants.of("acme", "agent:a"), { roles: ["viewer"] });
    assert.equal(grants.of("beta", "agent:a"), undefined);
    assert.deepEqual(grants.of("acme", "agent:cli"), { roles: [], scopes: [] });
    assert.deepEqual(grants.of("beta", "agent:cli"), { roles: [] });
  });

  const agent = "agent:a";
  for (const [why, record, text] of [
    ["no object", null, /no object/],
    ["no agent", { tenant: "acme" }, /ids/],
    ["an empty tenant", { tenant: "", agent }, /ids/],
    ["a misspelt field", { agent, scope: [] }, /no field scope/],
    ["a role that nobody knows", { agent, roles: ["root"] }, /no role root/],
    ["a scope that is none", { agent, scopes: ["write:task"] }, /write:task/],
    ["scopes that are no list", { agent, scopes: "write:*" }, /scopes/],
    ["too many scopes", { agent, scopes: Array.from({ length: 65 }, () => "read:*") }, /64/],
  ] as const) {
    test(`with ${why} it is not used, and the record is named`, () =>
      assert.throws(
        () => openGrants([{ agent: "agent:b" }, record]),
        (error: unknown) => isUnusable(text)(error) && isUnusable(/grant 1 /)(error),
      ));
  }

  test("who does not stand there may do nothing, and without a registry everybody may", () => {
    const grants = openGrants([{ agent: "agent:b" }]);
    assert.deepEqual(grantsOf(grants, "acme", "agent:a"), { roles: [], scopes: [] });
    assert.deepEqual(grantsOf(NO_REGISTRY, "acme", "agent:a"), { roles: [] });
  });

  test("an agent stands there once", () => {
    assert.throws(() => openGrants([{ agent }, { agent }]), isUnusable(/twice/));
  });
});

describe("a file of grants", () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "harmovela-grants-"));
    file = join(folder, "grants.json");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const write = (...grants: unknown[]) => writeFileSync(file, JSON.stringify({ grants }));

  test("a change takes effect within a second; a broken one is told, and the last good one stays", () => {
    const clock = new FakeClock();
    const passSecond = (): void => {
      clock.after(1_000, () => {});
      clock.runNext();
    };
    write({ agent: "agent:a" });
    const grants = openGrantsFile(file, clock);
    const heard: string[] = [];
    grants.listen(({ message }) => heard.push(message));
    write({ agent: "agent:bb", scopes: ["read:*"] });
    assert.deepEqual(grants.of("acme", "agent:a"), { roles: [] }, "not looked at yet");
    passSecond();
    assert.equal(grants.of("acme", "agent:a"), undefined);
    writeFileSync(file, "{");
    passSecond();
    assert.deepEqual(grants.of("acme", "agent:bb")?.scopes, ["read:*"]);
    passSecond();
    assert.deepEqual(grants.of("acme", "agent:bb")?.scopes, ["read:*"]);
    assert.equal(heard.length, 1, "once for each change");
    rmSync(file);
    passSecond();
    assert.deepEqual(grants.of("acme", "agent:bb")?.scopes, ["read:*"]);
    assert.equal(heard.length, 2);
  });

  test("a service does not start with one that cannot be used", () => {
    assert.throws(() => openGrantsFile(file, new FakeClock()), isUnusable(/grants\.json/));
    for (const text of ["null", "[]", '{"grants":{}}', '{"grants":[1]}']) {
      writeFileSync(file, text);
      assert.throws(() => openGrantsFile(file, new FakeClock()), isUnusable(/grants\.json/));
    }
  });
});

test("grants without proved senders are a fault of the configuration", () => {
  assert.throws(
    () => readConfig({ HARMOVELA_GRANTS: "grants.json" }),
    (error: unknown) => error instanceof ConfigError && /HARMOVELA_GRANTS/.test(error.message),
  );
});

test("the audit is off where nobody is proved, unless it is asked for; what is no setting is named", () => {
  assert.equal(readConfig({}).audit, false);
  assert.equal(readConfig({ HARMOVELA_AUDIT: "off" }).audit, false);
  const day = 86_400_000;
  assert.deepEqual(readConfig({ HARMOVELA_AUDIT: "on" }).audit, {
    maxAgeMs: 90 * day,
    maxBytes: 1024 ** 3,
  });
  const limits = { HARMOVELA_AUDIT_DAYS: "7", HARMOVELA_AUDIT_BYTES: "20000000" };
  assert.deepEqual(readConfig({ HARMOVELA_AUDIT: "on", ...limits }).audit, {
    maxAgeMs: 7 * day,
    maxBytes: 20_000_000,
  });
  for (const [name, value] of [
    ["HARMOVELA_AUDIT", "maybe"],
    ["HARMOVELA_AUDIT_DAYS", "0"],
    ["HARMOVELA_AUDIT_BYTES", "1000"],
  ] as const) {
    assert.throws(
      () => readConfig({ [name]: value }),
      (error: unknown) => error instanceof ConfigError && error.message.includes(name),
    );
  }
});
