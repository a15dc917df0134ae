/** Why a claim is not to be acted on (spec 6.1, 6.2): reads and sentences say the same. */
import { formatInstant, type Instant } from "@harmovela/envelope";
import { boundedText, type JsonObject } from "@harmovela/failure";
import { compare } from "./rules/conflict.ts";
import { LISTED_CLAIMS_MAX } from "./settings.ts";
import { type Claim, isLive, isStale, type Subject } from "./state.ts";

export type ReasonCode =
  | "unknown"
  | "withdrawn"
  | "superseded"
  | "revised"
  | "awaiting_re_evaluation"
  | "contradicted"
  | "stale"
  | "not_yet_valid"
  | "unverified";

export interface Reason {
  reason: ReasonCode;
  /** For people. */
  text: string;
  details: JsonObject;
}

/** The gravest first; none: it may be acted on. */
export function reasonsAgainst(claim: Claim, now: Instant): Reason[] {
  return [
    ...standing(claim),
    ...reEvaluation(claim),
    ...contradiction(claim),
    ...freshness(claim, now),
    ...trust(claim),
  ];
}

function standing(claim: Claim): Reason[] {
  const { withdrawn, overruledBy, mark } = claim;
  if (withdrawn !== undefined) {
    const { id, by, at, isRetraction, reason } = withdrawn;
    const how = isRetraction ? "retracted" : "invalidated";
    const because = reason === undefined ? "" : `, because: ${reason}`;
    const text = `was ${how} by ${by} (${id}) at ${formatInstant(at)}${because}`;
    return [{ reason: "withdrawn", text, details: { event_id: id, by } }];
  }
  if (!isLive(claim) && mark === undefined) {
    return [{ reason: "superseded", text: "was said again since", details: {} }];
  }
  if (claim.status === "retracted") {
    const details = { event_id: claim.event, by: claim.source };
    return [{ reason: "withdrawn", text: "is retracted, as its own source says", details }];
  }
  if (overruledBy === undefined) return [];
  const details = { event_id: overruledBy };
  return [{ reason: "revised", text: `was decided otherwise by ${overruledBy}`, details }];
}

function reEvaluation({ mark, due, status }: Claim): Reason[] {
  const fallen = mark ?? due?.because;
  if (fallen !== undefined) {
    const { retraction, key, dependsOn } = fallen;
    const text = `rests on retracted ${key} through ${dependsOn} (${retraction})`;
    const details = { retraction, retracted: key, depends_on: [dependsOn] };
    return [{ reason: "awaiting_re_evaluation", text, details }];
  }
  if (status !== "unknown") return [];
  const text = "is in doubt: its own source says that it is not known any more";
  return [{ reason: "awaiting_re_evaluation", text, details: {} }];
}

function contradiction({ subject, source, status }: Claim): Reason[] {
  const { conflict, report } = subject;
  if (conflict?.contested.has(source)) {
    const others = othersIn(subject, source);
    const names = others.map(({ source: other, value }) => `${other} (${value})`).join(", ");
    const text = `is contradicted by ${names} since ${formatInstant(conflict.at)} (${conflict.id})`;
    return [{ reason: "contradicted", text, details: { conflict: conflict.id, by: others } }];
  }
  if (report !== undefined) {
    const text = `is reported as contradicted by ${report.by} (${report.id})`;
    return [{ reason: "contradicted", text, details: { conflict: report.id } }];
  }
  if (status !== "contradicted") return [];
  const text = "is in doubt: its own source says that it is contradicted";
  return [{ reason: "contradicted", text, details: {} }];
}

/** Longest value that is quoted, UTF-16 units of its JSON. */
const VALUE_LENGTH_MAX = 120;

/** Those who say otherwise, as many as are worth listing. */
function othersIn({ conflict }: Subject, source: string): { source: string; value: string }[] {
  const own = conflict?.contested.get(source);
  return [...(conflict?.contested ?? [])]
    .filter(([, text]) => text !== own)
    .sort(([a], [b]) => compare(a, b))
    .slice(0, LISTED_CLAIMS_MAX)
    .map(([other, text]) => ({
      source: other,
      value: boundedText(text, VALUE_LENGTH_MAX),
    }));
}

function freshness(claim: Claim, now: Instant): Reason[] {
  const { window, validFrom, refreshHint } = claim;
  if (window !== undefined && isStale(claim, now)) {
    const since = formatInstant(window.end);
    const details: JsonObject = { since };
    if (refreshHint !== undefined) details.refresh_hint = refreshHint;
    return [{ reason: "stale", text: `is stale since ${since}`, details }];
  }
  if (validFrom <= now) return [];
  const from = formatInstant(validFrom);
  return [{ reason: "not_yet_valid", text: `is valid from ${from}`, details: { from } }];
}

/** No irreversible decision may rest on it alone (spec section 8). */
function trust({ trust: named }: Claim): Reason[] {
  if (named !== "unverified") return [];
  return [{ reason: "unverified", text: "comes from an unverified source", details: {} }];
}
