import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { decodeProtectedHeader, generateKeyPair, SignJWT } from "jose";
import {
  generateTokenKeys,
  openTokenKeyFile,
  openTokenKeys,
  rotateTokenKeys,
  tokenKeyFileIn,
} from "../src/index.ts";

const CLAIMS = { iss: "agent:a", exp: 1.5, extra: [null] };

test("a token says exactly what was signed, and is the same for the same claims", async () => {
  const keys = await openTokenKeys(await generateTokenKeys());
  const token = await keys.sign(CLAIMS);
  assert.equal(await keys.sign(CLAIMS), token);
  assert.deepEqual(await keys.verify(token), { kind: "verified", claims: CLAIMS });
  assert.equal(decodeProtectedHeader(token).alg, "EdDSA");
});

test("a token that names a key of ours and was not signed by it is forged", async () => {
  const keys = await openTokenKeys(await generateTokenKeys());
  const [header, , signature] = (await keys.sign(CLAIMS)).split(".");
  const payload = Buffer.from(JSON.stringify({ ...CLAIMS, iss: "agent:m" })).toString("base64url");
  const { privateKey } = await generateKeyPair("EdDSA");
  const kid = decodeProtectedHeader(`${header}..`).kid ?? "";
  const imitation = await new SignJWT(CLAIMS)
    .setProtectedHeader({ alg: "EdDSA", kid })
    .sign(privateKey);
  const unsigned = Buffer.from(JSON.stringify({ alg: "none", kid })).toString("base64url");
  for (const token of [
    `${header}.${payload}.${signature}`,
    `${header}.${payload}.`,
    `${unsigned}.${payload}.`,
    imitation,
  ]) {
    assert.deepEqual(await keys.verify(token), { kind: "forged" }, token);
  }
});

test("what names no key of ours is opaque", async () => {
  const keys = await openTokenKeys(await generateTokenKeys());
  const other = await openTokenKeys(await generateTokenKeys());
  for (const token of ["ht_abc123", "", "a.b.c", "..", await other.sign(CLAIMS)]) {
    assert.deepEqual(await keys.verify(token), { kind: "opaque" }, token);
  }
});

test("what is signed and is no object is forged", async () => {
  const keys = await openTokenKeys(await generateTokenKeys());
  const token = await keys.sign([1] as never);
  assert.deepEqual(await keys.verify(token), { kind: "forged" });
});

test("keys overlap while they are replaced, and then are gone", async () => {
  const first = await generateTokenKeys();
  const old = await (await openTokenKeys(first)).sign(CLAIMS);
  const second = await rotateTokenKeys(first);
  const keys = await openTokenKeys(second);
  assert.equal((await keys.verify(old)).kind, "verified");
  assert.notEqual(decodeProtectedHeader(await keys.sign(CLAIMS)).kid, first.keys[0]?.kid);
  const third = await openTokenKeys(await rotateTokenKeys(second));
  assert.equal((await third.verify(old)).kind, "opaque");
});

test("public keys verify and hold no secret", async () => {
  const set = await generateTokenKeys();
  const keys = await openTokenKeys(set);
  assert.equal(keys.publicKeys.keys.length, 1);
  assert.equal(keys.publicKeys.keys[0]?.kid, set.keys[0]?.kid);
  assert.ok(!JSON.stringify(keys.publicKeys).includes(String(set.keys[0]?.d)));
  await assert.rejects(openTokenKeys(keys.publicKeys), { code: "invalid_argument" });
});

test("many tokens are verified in bounded memory, and again", async () => {
  const keys = await openTokenKeys(await generateTokenKeys());
  const token = await keys.sign(CLAIMS);
  await keys.verify(token);
  for (let i = 0; i < 5000; i++) await keys.verify(`ht_${i}`);
  assert.equal((await keys.verify(token)).kind, "verified");
});

test("a key file is made once, for its owner alone, and serves several processes", async () => {
  const dir = mkdtempSync(join(tmpdir(), "harmovela-keys-"));
  try {
    const path = tokenKeyFileIn(join(dir, "store"));
    const [one, other] = await Promise.all([openTokenKeyFile(path), openTokenKeyFile(path)]);
    const token = await one.sign(CLAIMS);
    assert.equal((await other.verify(token)).kind, "verified");
    assert.equal((await (await openTokenKeyFile(path)).verify(token)).kind, "verified");
    assert.equal(statSync(path).mode & 0o777, 0o600);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("a file that holds no keys is refused without quoting it", async () => {
  const dir = mkdtempSync(join(tmpdir(), "harmovela-keys-"));
  try {
    const path = join(dir, "keys.json");
    const secret = "c2VjcmV0";
    for (const text of [
      "{",
      "[]",
      "null",
      '{"keys":[]}',
      '{"keys":[7]}',
      `{"keys":[{"kty":"oct","k":"${secret}"}]}`,
      `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"${secret}","d":"${secret}"}]}`,
    ]) {
      writeFileSync(path, text);
      await assert.rejects(openTokenKeyFile(path), (error) => {
        assert.ok(error instanceof HarmovelaError && error.code === "invalid_argument", text);
        assert.ok(!`${error.message} ${JSON.stringify(error)}`.includes(secret));
        return true;
      });
      assert.equal(readFileSync(path, "utf8"), text);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
});
