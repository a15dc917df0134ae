import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import { event } from "./family-support.ts";
import { type World, world } from "./support.ts";

const CALLER = "agent:a";
const TOOL = "tool:search";

function say(word: string, source = TOOL, id = "call_1") {
  return event(`tool.call.${word}`, { source, payload: { call_id: id } });
}

function call(...words: string[]): World {
  return world().given(
    { ...say("requested", CALLER), target: TOOL },
    ...words.map((word) => say(word)),
  );
}

const STATES: Record<string, string[]> = {
  requested: [],
  accepted: ["accepted"],
  started: ["started"],
  progress: ["started", "progress"],
  output: ["started", "output"],
};
const ALLOWED: Record<string, string[]> = {
  requested: ["accepted", "rejected", "started", "failed", "cancelled", "timed_out"],
  accepted: ["started", "failed", "cancelled", "timed_out"],
  started: ["progress", "output", "completed", "failed", "cancelled", "timed_out"],
  progress: ["progress", "output", "completed", "failed", "cancelled", "timed_out"],
  output: ["progress", "output", "completed", "failed", "cancelled", "timed_out"],
};
const WORDS = [...new Set(["requested", ...Object.values(ALLOWED).flat()])];
const ENDS = ["rejected", "completed", "failed", "cancelled", "timed_out"];

for (const [state, way] of Object.entries(STATES)) {
  for (const word of WORDS) {
    const isAllowed = ALLOWED[state]?.includes(word);
    test(`5.10 a ${state} call ${isAllowed ? "goes on with" : "refuses"} ${word}`, () => {
      const then = call(...way).when(say(word));
      if (!isAllowed) then.rejected("tool_error", { call_id: "call_1", from: state });
      else if (ENDS.includes(word)) then.accepted().when(say("progress")).rejected("tool_error");
      else then.accepted();
    });
  }
}

test("5.10 nothing comes before the request", () => {
  world().when(say("started")).rejected("tool_error");
});

test("5.10 cancelling is asked by the caller and changes no state", () => {
  const scenario = call("started");
  scenario.when(say("cancel.requested")).rejected("unauthorized");
  scenario.when(say("cancel.requested", CALLER)).accepted();
  scenario.when(say("output")).accepted();
  scenario.when(say("cancelled")).accepted();
});

test("5.10 the tool that was asked works, or the first that answers", () => {
  call().when(say("started", "tool:other")).rejected("unauthorized");
  const open = world().given(say("requested", CALLER), say("accepted"));
  open.when(say("started", "tool:other")).rejected("unauthorized");
  open.when(say("completed", CALLER)).rejected("unauthorized");
  open.when(say("timed_out", CALLER)).accepted();
});

test("a call without a name is a fact", () => {
  world()
    .when(event("tool.call.completed", { source: TOOL }))
    .accepted();
});

test("calls that never end are forgotten with the log that holds them", () => {
  const scenario = call();
  scenario.wait(DEFAULT_TASK_SETTINGS.retentionMs + 1).given(say("requested", CALLER, "call_2"));
  const calls = scenario.state.families.tenants.get(scenario.tenant)?.calls;
  assert.deepEqual([...(calls?.keys() ?? [])], ["call_2"]);
});
