/** What can be checked of the container files without a container engine. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, "utf8");

interface Service {
  image?: string;
  build?: { context: string; dockerfile: string };
  command: string[];
  ports?: string[];
  volumes?: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
}

const compose = parse(read("docker-compose.yml")) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
};

describe("docker-compose.yml", () => {
  test("every service folder is a service, and the other way round", () => {
    const folders = readdirSync(`${root}services`).sort();
    const named = Object.keys(compose.services).filter((name) => name !== "nats");
    assert.deepEqual(named.sort(), folders);
  });

  for (const [name, service] of Object.entries(compose.services)) {
    test(`${name} is reachable from this machine only, checks its health and stops gracefully`, () => {
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/);
      assert.ok((service.healthcheck?.test.length ?? 0) > 1);
      assert.ok(Number.parseInt(service.stop_grace_period ?? "0", 10) > 5);
      if (service.build === undefined) assert.match(service.image ?? "", /:\d+\.\d+\.\d+/);
      for (const volume of service.volumes ?? []) {
        const [from = ""] = volume.split(":");
        assert.ok(from.startsWith("./") ? existsSync(root + from) : from in compose.volumes, from);
      }
    });
  }

  for (const [name, service] of Object.entries(compose.services)) {
    if (service.build === undefined) continue;
    test(`${name} starts a program that the build makes`, () => {
      const path = service.command.at(-1) ?? "";
      assert.equal(service.command[0], "node");
      assert.ok(existsSync(root + path.replace("/dist/", "/src/").replace(/\.js$/, ".ts")));
      assert.ok(existsSync(root + (service.build?.dockerfile ?? "")));
    });
  }
});

describe("builds", () => {
  test("no two go by one name: builders that run at once refuse that", () => {
    const built = Object.values(compose.services).filter(({ build }) => build !== undefined);
    const names = built.flatMap(({ image }) => (image === undefined ? [] : [image]));
    assert.equal(new Set(names).size, names.length);
  });

  test("a machine's own keys, stores and builds are no part of the context", () => {
    const kept = read(".dockerignore").split("\n");
    const ignored = read(".gitignore")
      .split("\n")
      .filter((line) => /^[\w.*]/.test(line));
    for (const entry of [".harmovela", "**/*.nk", "**/node_modules", "**/dist"]) {
      assert.ok(kept.includes(entry), entry);
    }
    for (const entry of ignored) {
      const name = entry.replace(/\/$/, "");
      assert.ok(kept.includes(name) || kept.includes(`**/${name}`), `${entry} of .gitignore`);
    }
  });

  test("what a container writes into is a volume that begins as its user's", () => {
    const made = [...read("deploy/Dockerfile").matchAll(/install -d -o node .* (\/\w+)$/gm)];
    const folders = made.map(([, folder]) => folder);
    for (const { build, volumes = [], environment = {} } of Object.values(compose.services)) {
      if (build === undefined) continue;
      const mounted = volumes.map((volume) => volume.split(":")[1]);
      for (const path of mounted) assert.ok(folders.includes(path), path);
      const { HARMOVELA_TOKEN_KEYS: keys } = environment;
      if (keys !== undefined)
        assert.ok(
          mounted.some((path) => keys.startsWith(`${path}/`)),
          keys,
        );
    }
  });
});

describe("deploy/Dockerfile", () => {
  test("copies only what exists", () => {
    for (const [, sources = ""] of read("deploy/Dockerfile").matchAll(
      /^COPY (?!--from)(.+) \S+$/gm,
    )) {
      for (const source of sources.split(" ")) assert.ok(existsSync(root + source), source);
    }
  });
});
