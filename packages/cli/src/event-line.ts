/** One event on one line of a terminal. */
import { type Envelope, familyOf } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import pc from "picocolors";
import { cut, plainName, plainText } from "./terminal.ts";

const SUMMARY_LENGTH_MAX = 100;
const TYPE_WIDTH = 22;

/** Time of day, type, who to whom, task, what it says, position. All text of agents is escaped. */
export function eventLine(envelope: Envelope, cursor: string): string {
  const { type, source, target, task_id: taskId } = envelope;
  const parts = [
    pc.dim(timeOf(envelope)),
    colorOf(type)(plainName(type).padEnd(TYPE_WIDTH)),
    target === undefined ? plainName(source) : `${plainName(source)} → ${plainName(target)}`,
  ];
  if (taskId !== undefined) parts.push(pc.bold(plainName(taskId)));
  const summary = summaryOf(envelope);
  if (summary !== "") parts.push(summary);
  parts.push(pc.dim(plainName(cursor)));
  return parts.join("  ");
}

function timeOf({ created_at: at }: Envelope): string {
  return plainName(at.slice(11, 23)).replace(/Z$/, "");
}

function colorOf(type: string): (text: string) => string {
  if (type.endsWith(".rejected") || type.endsWith(".failed")) return pc.red;
  if (type.endsWith(".timed_out") || type.includes(".cancel")) return pc.yellow;
  if (type.endsWith(".completed")) return pc.green;
  return familyOf(type) === "task" ? pc.cyan : pc.magenta;
}

/** The part of the payload that tells a reader most. */
function summaryOf({ payload }: Envelope): string {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return "";
  const error = payload.error as JsonObject | undefined;
  if (typeof error === "object" && error !== null) {
    return pc.red(shown(`${text(error.code)}: ${text(error.message)}`));
  }
  const words = [payload.description, payload.message, payload.reason, payload.result]
    .filter((value) => value !== undefined && value !== null)
    .map(text);
  if (typeof payload.progress === "number")
    words.unshift(`${Math.round(payload.progress * 100)} %`);
  if (payload.forced === true) words.push("(forced)");
  return shown(words.join(" "));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function shown(words: string): string {
  return cut(plainText(words), SUMMARY_LENGTH_MAX);
}
