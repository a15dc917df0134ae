import type { Stored, Verdict } from "@harmovela/client";
import pc from "picocolors";
import { plainName } from "./terminal.ts";

/** What became of an envelope, on one line. */
export function verdictLine(verdict: Verdict | Stored): string {
  if ("stored" in verdict) return `${pc.green("stored")} ${plainName(verdict.id)}`;
  const { id, cursor, duplicate, pending, taskId } = verdict;
  const parts = [pc.green("accepted"), plainName(id), pc.dim(plainName(cursor))];
  if (taskId !== undefined) parts.push(`task ${plainName(taskId)}`);
  if (duplicate) parts.push("(accepted before)");
  if (pending) parts.push("(what follows from it is under way)");
  return parts.join(" ");
}
