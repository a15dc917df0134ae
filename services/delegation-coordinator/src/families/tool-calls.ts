/**
 * Tool calls that name themselves (`payload.call_id`) follow the stream of spec 5.10: nothing before
 * the request, nothing after the end. A call without a name is a fact: nothing says what it belongs to.
 */
import type { DecideContext, Decision, EventEntry, Judged } from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { textOf } from "../rules/identity.ts";
import type { FamilySettings } from "./settings.ts";
import type { CallState, FamilyState, TenantFamilies, ToolCall } from "./state.ts";
import { isUnused, remember } from "./unused.ts";

const PREFIX = "tool.call.";

type CallEnd = "rejected" | "completed" | "failed" | "cancelled" | "timed_out";
const ENDS: ReadonlySet<string> = new Set<CallEnd>([
  "rejected",
  "completed",
  "failed",
  "cancelled",
  "timed_out",
]);

const ABORTS = ["failed", "cancelled", "timed_out"];
const WORKING = ["progress", "output", "completed", ...ABORTS];

/** Mirrors the rows of the task table; a started call was accepted. */
const NEXT: Readonly<Record<CallState, ReadonlySet<string>>> = {
  requested: new Set(["accepted", "rejected", "started", ...ABORTS]),
  accepted: new Set(["started", ...ABORTS]),
  started: new Set(WORKING),
  progress: new Set(WORKING),
  output: new Set(WORKING),
};

/** Said by the caller, or by either side. */
const BY_CALLER: ReadonlySet<string> = new Set(["cancel.requested", "cancelled", "timed_out"]);

export function decideToolCall(
  state: FamilyState,
  { retentionMs }: FamilySettings,
  { envelope, tenant, source }: Judged,
  { now }: DecideContext,
): Decision {
  const id = textOf(envelope, "call_id");
  if (id === undefined) return { accept: envelope };
  const word = envelope.type.slice(PREFIX.length);
  const known = state.tenants.get(tenant)?.calls.get(id);
  // Whether it is still under way is a matter of time, and not of who has looked.
  const call = known && !isUnused(known.memory, retentionMs, now) ? known : undefined;
  const refuse = (message: string, details: { from?: string } = {}): Decision => ({
    reject: reject("tool_error", message, { call_id: id, ...details, to: word }),
  });
  if (word === "requested") {
    return call ? refuse("this call is under way", { from: call.state }) : { accept: envelope };
  }
  if (call === undefined) return refuse("no call of this id is under way");
  if (!maySay(call, word, source)) {
    const message = "another agent may say this about the call";
    return { reject: reject("unauthorized", message, { call_id: id }) };
  }
  if (word !== "cancel.requested" && !NEXT[call.state].has(word)) {
    return refuse("the call cannot go on like this", { from: call.state });
  }
  return { accept: envelope };
}

function maySay(call: ToolCall, word: string, source: string): boolean {
  if (BY_CALLER.has(word) && source === call.caller) return true;
  return word !== "cancel.requested" && (call.tool === undefined || call.tool === source);
}

export function evolveToolCall(
  state: FamilyState,
  tenant: TenantFamilies,
  { envelope, at }: EventEntry,
): void {
  const id = textOf(envelope, "call_id");
  if (id === undefined) return;
  const { calls } = tenant;
  const word = envelope.type.slice(PREFIX.length);
  const call = calls.get(id);
  if (word === "requested") {
    if (call) state.memories.remove(call.memory);
    const memory = remember(state, tenant, { kind: "calls", key: id, at });
    const { source: caller, target: tool } = envelope;
    calls.set(id, { id, caller, tool, memory, state: "requested" });
    return;
  }
  if (call === undefined) return;
  call.memory.usedAt = at;
  if (ENDS.has(word)) {
    calls.delete(id);
    state.memories.remove(call.memory);
  } else if (isState(word)) {
    call.state = word;
    call.tool ??= envelope.source;
  }
}

function isState(word: string): word is CallState {
  return Object.hasOwn(NEXT, word);
}
