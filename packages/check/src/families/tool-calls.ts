import { payloadText, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { forgetOld, notOld } from "./forget.ts";

interface Call {
  /** When somebody last said a word about it. */
  at: number;
  readonly caller: string;
  /** Named by the request, else whoever answers first. */
  tool: string | undefined;
  state: string;
}

const PREFIX = "tool.call.";
const ABORTS = ["failed", "cancelled", "timed_out"];
const WORKING = ["progress", "output", "completed", ...ABORTS];
const ENDS: ReadonlySet<string> = new Set(["rejected", "completed", ...ABORTS]);
const BY_CALLER: ReadonlySet<string> = new Set(["cancel.requested", "cancelled", "timed_out"]);

/** The stream of a call mirrors that of a task (spec 5.10). */
const NEXT: ReadonlyMap<string, readonly string[]> = new Map([
  ["requested", ["accepted", "rejected", "started", ...ABORTS]],
  ["accepted", ["started", ...ABORTS]],
  ["started", WORKING],
  ["progress", WORKING],
  ["output", WORKING],
]);

/** Tool calls that name themselves; of the others nothing says what belongs together. */
export class ToolCallRules {
  readonly #context: TaskContext;
  readonly #calls = new Map<string, Call>();

  constructor(context: TaskContext) {
    this.#context = context;
  }

  onEvent({ tenant, envelope, frame }: TaskEvent): void {
    const id = payloadText(envelope, "call_id");
    if (!envelope.type.startsWith(PREFIX) || id === undefined) return;
    const { sink, settings, isLenient } = this.#context;
    const { source, target } = envelope;
    const word = envelope.type.slice(PREFIX.length);
    const key = `${tenant.length}:${tenant}${id}`;
    const before = frame.at - settings.retentionMs;
    const call = notOld(this.#calls.get(key), before);
    if (word === "requested") {
      if (call !== undefined) sink.add("call-order", `call ${id} is under way`);
      forgetOld(this.#calls, before);
      this.#calls.delete(key);
      this.#calls.set(key, { at: frame.at, caller: source, tool: target, state: word });
      return;
    }
    if (call === undefined) {
      if (!isLenient) sink.add("call-order", `${word} of call ${id}, which is not under way`);
      return;
    }
    if (!maySay(call, word, source)) {
      sink.add("call-party", `${word} of call ${id} by ${source}`);
      return;
    }
    // The one that was used last stands last.
    call.at = frame.at;
    this.#calls.delete(key);
    this.#calls.set(key, call);
    if (word === "cancel.requested") return;
    if (!NEXT.get(call.state)?.includes(word)) {
      sink.add("call-order", `${word} of call ${id} after ${call.state}`);
    } else if (ENDS.has(word)) this.#calls.delete(key);
    else {
      call.state = word;
      call.tool ??= source;
    }
  }
}

function maySay({ caller, tool }: Call, word: string, source: string): boolean {
  if (BY_CALLER.has(word) && source === caller) return true;
  return word !== "cancel.requested" && (tool === undefined || tool === source);
}
