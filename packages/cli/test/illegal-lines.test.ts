/** Which lines of a file are illegal, said by the checker alone. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Envelope } from "@harmovela/envelope";
import { deriveIllegalLines, illegalLinesOf } from "../src/conformance/illegal-lines.ts";
import { underOtherNames } from "../src/conformance/judge-file.ts";
import { readManifest } from "../src/conformance/manifest.ts";
import { toLines } from "../src/conformance/run-file.ts";

const MANIFEST = fileURLToPath(new URL("../../../test/conformance/manifest.json", import.meta.url));
const AT = Date.parse("2026-11-30T10:00:00Z");

let count = 0;
function say(type: string, source: string, fields: Partial<Envelope> = {}): string {
  count += 1;
  const created_at = "2026-03-01T00:00:00Z";
  const frame = { spec_version: "0.2", id: `evt_${count}`, type, source, created_at };
  return JSON.stringify({ ...frame, payload: {}, ...fields });
}
const task = (name: string, source: string, id: string, fields: Partial<Envelope> = {}): string =>
  say(`task.${name}`, source, { task_id: id, ...fields });

const derive = (...lines: string[]): number[] => deriveIllegalLines(toLines(lines.join("\n")), AT);

describe("illegal lines of our cases", () => {
  for (const fixture of readManifest(MANIFEST)) {
    it(`${fixture.path}: those that its manifest names, under any names`, () => {
      const lines = toLines(readFileSync(fixture.file, "utf8"));
      const derived = deriveIllegalLines(lines, AT);
      assert.deepEqual(derived, fixture.illegalLines ?? []);
      assert.deepEqual(deriveIllegalLines(underOtherNames(lines), AT), derived);
    });
  }
});

describe("an illegal line", () => {
  it("is what the manifest says, where it says something", () => {
    const lines = toLines(task("completed", "agent:a", "t"));
    assert.deepEqual(illegalLinesOf({ illegalLines: [] }, lines), []);
    assert.deepEqual(illegalLinesOf({ illegalLines: undefined }, lines), [1]);
  });

  it("leaves no effect: what follows is judged without it", () => {
    const lines = [
      task("submitted", "agent:a", "t"),
      task("completed", "agent:a", "t"),
      task("started", "agent:a", "t"),
      task("completed", "agent:a", "t"),
    ];
    assert.deepEqual(derive(...lines), [2]);
  });

  it("keeps its id: the same id is refused afterwards, whatever it says", () => {
    const illegal = task("completed", "agent:a", "t", { id: "evt_taken" });
    const other = task("submitted", "agent:a", "t", { id: "evt_taken" });
    assert.deepEqual(derive(illegal, other, illegal), [1, 2, 3]);
  });

  it("is not a legal one that is said again", () => {
    const submitted = task("submitted", "agent:a", "t");
    assert.deepEqual(derive(submitted, submitted), []);
  });
});

describe("what follows from a legal line", () => {
  const tree = [
    task("submitted", "agent:a", "root"),
    task("started", "agent:a", "root"),
    task("submitted", "agent:a", "kid", { parent_task_id: "root" }),
    task("submitted", "agent:a", "leaf", { parent_task_id: "kid" }),
  ];

  it("a cascade: nobody below works on, and the root has ended", () => {
    for (const end of ["cancelled", "failed"]) {
      const error = { code: "task_error", message: "m", retryable: false };
      const lines = [
        ...tree,
        task(end, "agent:a", "root", { payload: end === "failed" ? { error } : {} }),
        task("started", "agent:a", "leaf"),
        task("started", "agent:a", "kid"),
        task("completed", "agent:a", "root"),
      ];
      assert.deepEqual(derive(...lines), [6, 7, 8]);
    }
  });

  it("a cascade that its producer repeats with the same cause is no new event", () => {
    const cancel = task("cancelled", "agent:a", "root");
    const { id } = JSON.parse(cancel) as Envelope;
    const again = task("cancelled", "agent:a", "kid", { causation_id: id });
    const other = task("cancelled", "agent:a", "kid", { causation_id: "evt_other" });
    assert.deepEqual(derive(...tree, cancel, again, other), [7]);
  });

  it("a cancel request: what nobody runs has ended, what runs may go on", () => {
    const lines = [
      ...tree,
      task("started", "agent:a", "kid"),
      task("cancel.requested", "agent:a", "root"),
      task("started", "agent:a", "leaf"),
      task("progress", "agent:a", "kid"),
      task("submitted", "agent:a", "late", { parent_task_id: "kid" }),
    ];
    assert.deepEqual(derive(...lines), [7, 9]);
  });

  it("a session: its profiles are in force, what cannot be had ends it, and nothing follows its end", () => {
    const opened = (session_id: string, capabilities: object): string =>
      say("session.opened", "agent:a", {
        session_id,
        payload: { session_id, version: "0.2", capabilities: { ...capabilities } },
      });
    const revised = (session_id: string): string =>
      say("delegation.requested", "agent:a", {
        session_id,
        delegated_by: "agent:a",
        delegated_to: "agent:b",
        task_id: `t_${count}`,
      });
    const semantics = ["harmovela.runtime-semantics.v1"];
    const secure = ["harmovela.security.v1"];
    const unheard = ["harmovela.unheard.v1"];
    const lines = [
      opened("s1", { profiles: semantics }),
      revised("s1"),
      opened("s2", { profiles: secure }),
      revised("s2"),
      opened("s3", { required_profiles: unheard }),
      revised("s3"),
      say("session.closed", "agent:a", { session_id: "s2", payload: { session_id: "s2" } }),
      revised("s2"),
    ];
    assert.deepEqual(derive(...lines), [2, 6, 8]);
  });

  it("a request to nobody known that nobody answers", () => {
    const ask = (correlation_id: string, target: string): string =>
      say("query.requested", "agent:a", {
        target,
        correlation_id,
        payload: { query_scope: "all" },
      });
    const answer = say("query.response", "harness:h", {
      correlation_id: "c2",
      payload: { query_scope: "all", snapshot_version: 1 },
    });
    const spoken = say("environment.observed", "agent:known");
    assert.deepEqual(derive(ask("c1", "agent:x"), ask("c2", "agent:y"), answer), [1]);
    assert.deepEqual(derive(spoken, ask("c3", "agent:known")), []);
  });
});
