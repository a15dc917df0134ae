/** Beliefs as lines: what is claimed, by whom, and what speaks against it. */
import type { JsonObject } from "@harmovela/failure";
import pc from "picocolors";
import { cut, plainName, plainText } from "./terminal.ts";

const VALUE_LENGTH_MAX = 40;
const NOTE_LENGTH_MAX = 100;

/** Key, value, source, status, and the gravest reason not to act on it. All text of agents is escaped. */
export function beliefLine(claim: JsonObject): string {
  const { key, source, value, belief_status: status, is_stale: isStale, reasons } = claim;
  const isGood = claim.useable === true;
  const state = isStale === true ? `${String(status)}, stale` : String(status);
  const parts = [
    pc.bold(plainName(String(key))),
    cut(plainText(value === undefined ? "-" : JSON.stringify(value)), VALUE_LENGTH_MAX),
    plainName(String(source)),
    (isGood ? pc.green : pc.yellow)(plainName(state)),
  ];
  const [first] = Array.isArray(reasons) ? reasons : [];
  if (first !== null && typeof first === "object" && !Array.isArray(first)) {
    parts.push(pc.dim(cut(plainText(String(first.text)), NOTE_LENGTH_MAX)));
  }
  return parts.join("  ");
}
