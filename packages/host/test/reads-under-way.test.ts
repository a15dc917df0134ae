/** What questions may take up: in all, and of one source (architecture, section 3). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { READS_PER_SOURCE_MAX, ReadsUnderWay } from "../src/reads/reads-under-way.ts";

test("one source has its share, and all together have a bound; what has ended makes room", () => {
  const reads = new ReadsUnderWay();
  const began = (source: string, tenant = "acme"): number => {
    let count = 0;
    while (reads.begin(tenant, source)) count += 1;
    return count;
  };
  assert.equal(began("agent:a"), READS_PER_SOURCE_MAX);
  assert.equal(began("agent:a", "beta"), READS_PER_SOURCE_MAX);
  assert.equal(began("agent:d"), 0);
  reads.end("acme", "agent:a");
  assert.equal(began("agent:d"), 1);
  assert.equal(began("agent:a"), 0);
});

test("a tenant that asks for all leaves others a little, and all of them have a bound too", () => {
  const reads = new ReadsUnderWay();
  const began = (tenant: string): number => {
    let count = 0;
    for (let agent = 0; agent < 3; agent += 1)
      while (reads.begin(tenant, `agent:${agent}`)) count += 1;
    return count;
  };
  assert.equal(began("loud"), 2_000);
  assert.equal(began("quiet"), 50);
  let more = 0;
  for (let tenant = 0; tenant < 100; tenant += 1) more += began(`t${tenant}`);
  assert.equal(more, 2_000 - 50);
});

test("who asks nothing is not remembered", () => {
  const reads = new ReadsUnderWay();
  for (let index = 0; index < 5_000; index += 1) {
    assert.ok(reads.begin("acme", `agent:${index}`));
    reads.end("acme", `agent:${index}`);
  }
  assert.equal(reads.sources, 0);
});
