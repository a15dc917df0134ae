import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, test } from "node:test";
import { findNatsServer } from "@harmovela/bus";

const root = mkdtempSync(join(tmpdir(), "harmovela-find-"));
after(() => rmSync(root, { recursive: true, force: true }));

function executable(...path: string[]): string {
  const file = join(root, ...path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "");
  chmodSync(file, 0o755);
  return file;
}

test("the variable comes first, then PATH, then the newest in the cache of a folder above", () => {
  const from = join(root, "repository", "packages", "bus", "src");
  mkdirSync(from, { recursive: true });
  assert.equal(findNatsServer({}, from), undefined);

  executable("repository", ".cache", "nats-server", "2.9.10", "nats-server");
  const newest = executable("repository", ".cache", "nats-server", "2.15.1", "nats-server");
  const broken = executable("repository", ".cache", "nats-server", "2.16.0", "nats-server");
  chmodSync(broken, 0o644);
  assert.equal(findNatsServer({}, from), newest);

  mkdirSync(join(root, "a folder", "nats-server"), { recursive: true });
  const onPath = executable("bin", "nats-server");
  const PATH = ["", join(root, "a folder"), dirname(onPath)].join(delimiter);
  assert.equal(findNatsServer({ PATH }, from), onPath);

  const named = join(root, "named, and not even there");
  assert.equal(findNatsServer({ PATH, HARMOVELA_NATS_SERVER: named }, from), named);
});
