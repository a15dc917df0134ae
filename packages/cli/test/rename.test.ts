import assert from "node:assert/strict";
import { test } from "node:test";
import { renamed } from "../src/conformance/rename.ts";

test("names change together, wherever they stand as whole strings", () => {
  const [first, second] = renamed([
    {
      id: "evt_1",
      type: "task.submitted",
      source: "agent:planner",
      target: "harness:main",
      task_id: "task_1",
      payload: { task_id: "task_1", state: "submitted", note: "task_1 is mine" },
    },
    {
      id: "evt_2",
      type: "task.cancelled",
      source: "agent:planner",
      causation_id: "evt_1",
      evidence_chain: [{ source: "sensor:a", id: "evt_1" }],
      payload: { items: ["task_1", "evt_2", 7, null] },
    },
  ]) as [Record<string, unknown>, Record<string, unknown>];
  const payload = first.payload as Record<string, unknown>;
  assert.match(String(first.id), /^evt_other\d+$/);
  assert.match(String(first.source), /^agent:other\d+$/);
  assert.equal(first.target, "harness:main");
  assert.equal(first.type, "task.submitted");
  assert.notEqual(first.task_id, "task_1");
  assert.equal(payload.task_id, first.task_id);
  assert.equal(payload.state, "submitted");
  assert.equal(payload.note, "task_1 is mine");
  assert.equal(second.source, first.source);
  assert.equal(second.causation_id, first.id);
  assert.deepEqual(second.evidence_chain, [
    { source: (second.evidence_chain as { source: string }[])[0]?.source, id: first.id },
  ]);
  assert.deepEqual(second.payload, { items: [first.task_id, second.id, 7, null] });
});

test("different names stay different, and a wrong name stays as wrong as it is", () => {
  const values = renamed([
    { id: "a", source: "agent:a" },
    { id: "b", source: "" },
    { id: "", source: "x".repeat(200) },
    { id: "hv_01ARZ3NDEKTSV4RRFFQ69G5FAV", source: 5 },
    null,
    "text",
  ]) as { id?: string; source?: unknown }[];
  assert.notEqual(values[0]?.id, values[1]?.id);
  assert.equal(values[1]?.source, "");
  assert.equal(values[2]?.id, "");
  assert.equal(values[2]?.source, "x".repeat(200));
  assert.equal(values[3]?.id, "hv_01ARZ3NDEKTSV4RRFFQ69G5FAV");
  assert.equal(values[3]?.source, 5);
  assert.deepEqual(values.slice(4), [null, "text"]);
});
