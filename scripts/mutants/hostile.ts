/** Faults in what keeps hostile input out: each lets one sender do more than its share, or be taken for another. */
import type { Mutant } from "./mutant.ts";

const HOST = "packages/host/src";
const at = (name: string): string => `packages/host/test/${name}.test.ts`;

export const HOSTILE_MUTANTS: readonly Mutant[] = [
  {
    name: "hostile: what is refused unread takes from the budget",
    file: `${HOST}/source-rate.ts`,
    find: "      bucket.isOver = true;\n",
    replace: "      bucket.isOver = true;\n      bucket.messages -= 1;\n",
    tests: [at("source-rate")],
  },
  {
    name: "hostile: services are limited like everybody",
    file: `${HOST}/source-rate.ts`,
    find: "sender === undefined || isService(sender.source)",
    replace: "sender === undefined",
    tests: [at("source-rate")],
  },
  {
    name: "hostile: all tenants of one source share a budget",
    file: `${HOST}/source-rate.ts`,
    find: `\`\${tenant}\\u0000\${source}\`, time`,
    replace: "source, time",
    tests: [at("source-rate")],
  },
  {
    name: "hostile: sources are remembered without end",
    file: `${HOST}/source-rate.ts`,
    find: "if (this.#buckets.size <= SOURCES_MAX) return;",
    replace: "if (this.#buckets.size > 0) return;",
    tests: [at("source-rate")],
  },
  {
    name: "hostile: one source asks until nobody else can",
    file: `${HOST}/reads/reads-under-way.ts`,
    find: "own >= READS_PER_SOURCE_MAX || ",
    replace: "",
    tests: [at("reads-under-way")],
  },
  {
    name: "hostile: one tenant asks until nobody else can",
    file: `${HOST}/tenant-shares.ts`,
    find: "own < reserved ? 2 * all : all",
    replace: "all",
    tests: [at("reads-under-way"), at("turns")],
  },
  {
    name: "hostile: a tenant that waits with many questions goes before all others",
    file: `${HOST}/replay/turns.ts`,
    find: "this.#waiting.delete(next);\n      if (waiting.size > 0) this.#waiting.set(next, waiting);",
    replace: "if (waiting.size === 0) this.#waiting.delete(next);",
    tests: [at("turns")],
  },
  {
    name: "hostile: an agent speaks as the service that judges it",
    file: `${HOST}/validate.ts`,
    find: "if (envelope.source === service) {",
    replace: 'if (envelope.source === "") {',
    tests: [at("validate")],
  },
  {
    name: "hostile: something unsigned stands beside a signature",
    file: "packages/envelope/src/signing.ts",
    find: "second === undefined && Object.keys(authorization).length === 2",
    replace: "second === undefined",
    tests: [at("agent-keys")],
  },
  {
    name: "hostile: a type has two spellings in a subject",
    file: "packages/bus/src/subjects.ts",
    find: 'segment === undefined || segment.includes(".")',
    replace: "segment === undefined",
    tests: ["packages/bus/test/subjects.test.ts"],
  },
];
