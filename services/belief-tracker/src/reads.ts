/** Answers about claims (spec 6). Pure functions of the state; each is bounded. The host adds the log position. */
import { formatInstant, type Instant, optionalTextParam, wholeParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import { type BeliefState, type Claim, isLive, isStale, type Node, type Subject } from "./state.ts";
import { type Reason, reasonsAgainst } from "./status.ts";

type Read = (
  state: BeliefState,
  params: JsonObject,
  context: { tenant: string; now: Instant },
) => JsonValue;

/** Claims that one answer lists. */
const LIMIT = 1000;
/** Nodes beyond the listed ones that are still counted. */
const COUNTED_MAX = 100_000;
const SUBJECT_CLAIMS_MAX = 100;

/**
 * A claim is named by `event_id`, or by `key` (with `source` where several agents claim it; else the
 * newest live one is meant).
 */
export const BELIEF_READS: Readonly<
  Record<"get" | "subject" | "stale" | "dependents" | "why" | "useable" | "list", Read>
> = {
  get: (state, params, { tenant, now }) => viewOf(found(claimIn(state, tenant, params)), now),
  subject: (state, params, { tenant, now }) =>
    subjectView(foundSubject(state, tenant, params), now),
  stale: readStale,
  dependents: readDependents,
  why: readWhy,
  useable: readUseable,
  list: readList,
};

function limitIn(params: JsonObject): number {
  return wholeParam(params, "limit", { min: 1, max: LIMIT, fallback: LIMIT });
}

function claimIn(state: BeliefState, tenant: string, params: JsonObject): Claim | undefined {
  const id = optionalTextParam(params, "event_id");
  if (id !== undefined) {
    const node = state.tenants.get(tenant)?.events.get(id);
    return node?.kind === "claim" ? node : undefined;
  }
  const subject = subjectIn(state, tenant, params);
  const source = optionalTextParam(params, "source");
  if (source !== undefined) return subject?.claims.get(source) ?? subject?.past?.get(source);
  return newest(subject?.claims.values()) ?? newest(subject?.past?.values());
}

function newest(claims: Iterable<Claim> = []): Claim | undefined {
  let last: Claim | undefined;
  for (const claim of claims) if (last === undefined || claim.seq > last.seq) last = claim;
  return last;
}

function subjectIn(state: BeliefState, tenant: string, params: JsonObject): Subject | undefined {
  const key = optionalTextParam(params, "key");
  if (key !== undefined) return state.tenants.get(tenant)?.subjects.get(key);
  throw new HarmovelaError("invalid_query", "key or event_id must be a non-empty string");
}

function foundSubject(state: BeliefState, tenant: string, params: JsonObject): Subject {
  return found(subjectIn(state, tenant, params));
}

function found<T>(view: T | undefined): T {
  if (view !== undefined) return view;
  throw new HarmovelaError("invalid_query", "nothing is claimed about this");
}

/** One claim as it stands. */
export function viewOf(claim: Claim, now: Instant): JsonObject {
  const { subject, window, confidence, change, restsOn } = claim;
  const reasons = reasonsAgainst(claim, now);
  const view: JsonObject = {
    key: subject.key,
    source: claim.source,
    event_id: claim.event,
    seq: claim.seq,
    asserted_at: formatInstant(claim.createdAt),
    is_live: isLive(claim),
    belief_status: statusOf(claim),
    is_stale: isStale(claim, now),
    useable: reasons.length === 0,
    reasons: reasons.map(reasonView),
    rests_on: restsOn.slice(0, SUBJECT_CLAIMS_MAX).map(idOf),
    rests_on_count: restsOn.length,
    dependents: claim.dependents?.size ?? 0,
    valid_from: formatInstant(claim.validFrom),
  };
  if (claim.text !== undefined) view.value = JSON.parse(claim.text) as JsonValue;
  if (claim.scope !== undefined) view.belief_scope = claim.scope;
  if (confidence !== undefined) view.confidence = confidence;
  if (claim.trust !== undefined) view.source_trust = claim.trust;
  if (claim.refreshHint !== undefined) view.refresh_hint = claim.refreshHint;
  if (window !== undefined) view.valid_until = formatInstant(window.end);
  if (change !== undefined) view.window_changed = { event_id: change.id, flags: [...change.flags] };
  return view;
}

/** What it is worth now, as the protocol names it. */
function statusOf(claim: Claim): string {
  if (claim.withdrawn !== undefined) return "retracted";
  if (claim.mark !== undefined || claim.due !== undefined) return "unknown";
  if (claim.subject.conflict?.contested.has(claim.source)) return "contradicted";
  if (claim.overruledBy !== undefined) return "revised";
  return claim.status ?? "asserted";
}

function reasonView({ reason, text, details }: Reason): JsonObject {
  return { reason, text, ...details };
}

function idOf(node: Node): string {
  return node.kind === "claim" ? node.event : node.id;
}

function subjectView(subject: Subject, now: Instant): JsonObject {
  const { conflict, resolved, report, claims, past = new Map<string, Claim>() } = subject;
  const view: JsonObject = {
    key: subject.key,
    claims: first(claims.values(), SUBJECT_CLAIMS_MAX).map((claim) => viewOf(claim, now)),
    claim_count: claims.size,
    past: first(past.values(), SUBJECT_CLAIMS_MAX).map((claim) => viewOf(claim, now)),
    past_count: past.size,
  };
  if (conflict !== undefined) {
    const { id, at, contested } = conflict;
    const sources = first(contested.keys(), SUBJECT_CLAIMS_MAX);
    view.conflict = { id, since: formatInstant(at), sources, count: contested.size };
  }
  if (resolved !== undefined) {
    const { conflict: id, by, at } = resolved;
    view.resolved = { conflict: id, by, at: formatInstant(at) };
  }
  if (report !== undefined) {
    view.report = { id: report.id, by: report.by, since: formatInstant(report.at) };
  }
  return view;
}

function first<T>(items: Iterable<T>, max: number): T[] {
  const list: T[] = [];
  for (const item of items) {
    if (list.length === max) break;
    list.push(item);
  }
  return list;
}

/** Live claims whose expiry is logged, longest stale first. */
function readStale(
  state: BeliefState,
  params: JsonObject,
  { tenant, now }: { tenant: string; now: Instant },
): JsonValue {
  const stale = state.tenants.get(tenant)?.stale ?? new Set<Claim>();
  const claims = first(stale, limitIn(params)).map((claim) => viewOf(claim, now));
  return { claims, total: stale.size };
}

/** What rests on a claim, directly or through others, nearest first. */
function readDependents(
  state: BeliefState,
  params: JsonObject,
  { tenant }: { tenant: string },
): JsonValue {
  const root = found(rootIn(state, tenant, params));
  const limit = limitIn(params);
  const nodes: JsonObject[] = [];
  const seen = new Set<Node>([root]);
  let level: Node[] = [root];
  for (let depth = 1; level.length > 0; depth += 1) {
    const next: Node[] = [];
    for (const node of level) {
      for (const claim of node.dependents ?? []) {
        if (seen.has(claim)) continue;
        seen.add(claim);
        if (seen.size > COUNTED_MAX + 1) {
          return { dependents: nodes, total: COUNTED_MAX, total_is_more: true };
        }
        next.push(claim);
        if (nodes.length < limit) nodes.push(briefView(claim, depth));
      }
    }
    level = next;
  }
  return { dependents: nodes, total: seen.size - 1, total_is_more: false };
}

function rootIn(state: BeliefState, tenant: string, params: JsonObject): Node | undefined {
  const id = optionalTextParam(params, "event_id");
  if (id !== undefined) return state.tenants.get(tenant)?.events.get(id);
  return claimIn(state, tenant, params);
}

function briefView(claim: Claim, depth: number): JsonObject {
  return {
    key: claim.subject.key,
    source: claim.source,
    event_id: claim.event,
    belief_status: statusOf(claim),
    is_live: isLive(claim),
    depth,
  };
}

/** One sentence: how it stands with a claim, and why. */
function readWhy(
  state: BeliefState,
  params: JsonObject,
  { tenant, now }: { tenant: string; now: Instant },
): JsonValue {
  const claim = found(claimIn(state, tenant, params));
  const { subject, source, event, createdAt } = claim;
  const reasons = reasonsAgainst(claim, now);
  const who = `${subject.key}, as ${source} said (${event}) at ${formatInstant(createdAt)},`;
  if (reasons.length > 0) return `${who} ${reasons.map(({ text }) => text).join("; ")}`;
  const until = claim.window === undefined ? "" : ` until ${formatInstant(claim.window.end)}`;
  return `${who} stands${until}: nothing speaks against it`;
}

/** "May I act on this?": whether any claim that is meant stands, else why each does not. */
function readUseable(
  state: BeliefState,
  params: JsonObject,
  { tenant, now }: { tenant: string; now: Instant },
): JsonValue {
  const claims = meant(state, tenant, params);
  if (claims.length === 0) {
    const text = "nothing is claimed about this";
    return { useable: false, reasons: [{ reason: "unknown", text }] };
  }
  const reasons: JsonObject[] = [];
  for (const claim of claims) {
    const against = reasonsAgainst(claim, now);
    if (against.length === 0) {
      return { useable: true, reasons: [], event_id: claim.event, source: claim.source };
    }
    for (const reason of against) {
      if (reasons.length < SUBJECT_CLAIMS_MAX) {
        reasons.push({ ...reasonView(reason), event_id: claim.event, source: claim.source });
      }
    }
  }
  return { useable: false, reasons };
}

/** All live claims on a key, the newest first, when nobody is named. */
function meant(state: BeliefState, tenant: string, params: JsonObject): Claim[] {
  const one = claimIn(state, tenant, params);
  if (one === undefined) return [];
  if (params.event_id !== undefined || params.source !== undefined || !isLive(one)) return [one];
  return [...one.subject.claims.values()].sort((a, b) => b.seq - a.seq);
}

const FILTERS = ["all", "stale", "contradicted", "unknown"] as const;

/**
 * Live claims in the order in which their subjects came, whole subjects at a time; `after` is the
 * `next` of the page before.
 */
function readList(
  state: BeliefState,
  params: JsonObject,
  { tenant, now }: { tenant: string; now: Instant },
): JsonValue {
  const limit = limitIn(params);
  const filter = optionalTextParam(params, "state") ?? "all";
  const prefix = optionalTextParam(params, "prefix") ?? "";
  const after = optionalTextParam(params, "after");
  if (!FILTERS.some((known) => known === filter)) {
    throw new HarmovelaError("invalid_query", `state must be one of ${FILTERS.join(", ")}`);
  }
  const subjects = state.tenants.get(tenant)?.subjects ?? new Map<string, Subject>();
  if (after !== undefined && !subjects.has(after)) {
    throw new HarmovelaError("invalid_query", "the page before is no longer known: begin again");
  }
  const claims: JsonObject[] = [];
  let isPassed = after === undefined;
  let last = after;
  for (const subject of subjects.values()) {
    if (!isPassed) {
      isPassed = subject.key === after;
      continue;
    }
    if (claims.length >= limit) return { claims, next: String(last) };
    last = subject.key;
    if (!subject.key.startsWith(prefix)) continue;
    for (const claim of subject.claims.values()) {
      if (isWanted(claim, filter, now)) claims.push(viewOf(claim, now));
    }
  }
  return { claims };
}

function isWanted(claim: Claim, filter: string, now: Instant): boolean {
  if (filter === "all") return true;
  return filter === "stale" ? isStale(claim, now) : statusOf(claim) === filter;
}
