/** Answers about lineages and who vouches for what (spec section 8). Each is bounded; the host adds the log position. */
import { flagParam, formatInstant, textParam, wholeParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import { actionParam } from "./action.ts";
import { attestationView, graphOf, viewOf } from "./graph.ts";
import { objectionsTo } from "./may.ts";
import { inspectChain } from "./rules/chain.ts";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, type Known, vouchersOf } from "./state.ts";
import { type Archive, firstProblem } from "./stored.ts";

type Read = (
  state: AttesterState,
  params: JsonObject,
  context: { tenant: string } & Archive,
) => JsonValue | Promise<JsonValue>;

/** Attestations that one answer lists; the total beside them is exact. */
const LISTED_MAX = 1_000;
const DEPTH_MAX = 64;
const NODES_MAX = 1_000;

/** Every question names its event by `event_id`. */
export function createReads(
  settings: Pick<AttesterSettings, "attestationsNeeded">,
): Readonly<Record<"chain" | "attestations" | "graph" | "may", Read>> {
  return {
    chain: readChain,
    attestations: readAttestations,
    graph: readGraph,
    may: (state, params, context) => readMay(state, settings, params, context),
  };
}

function find(state: AttesterState, tenant: string, params: JsonObject): Known | undefined {
  return state.tenants.get(tenant)?.events.get(textParam(params, "event_id"));
}

function found(event: Known | undefined): Known {
  if (event !== undefined) return event;
  throw new HarmovelaError("invalid_query", "no log has shown this event", {
    details: { reason: "unknown_event" },
  });
}

/** Whether what an event follows from can be shown. `verify`: the logs are asked too, not only what is known. */
async function readChain(
  state: AttesterState,
  params: JsonObject,
  context: { tenant: string } & Archive,
): Promise<JsonValue> {
  const event = found(find(state, context.tenant, params));
  const report = inspectChain(state, event.tenant, event);
  const view: JsonObject = {
    event_id: event.id,
    result: report.result,
    links: report.links,
    checked: report.checked,
  };
  if (report.firstBad !== undefined) view.first_bad = { ...report.firstBad };
  if (event.truncated !== undefined) view.truncated_by = event.truncated;
  if (!flagParam(params, "verify")) return view;
  const good = event.links.slice(0, report.firstBad?.index ?? report.links);
  const events = good.flatMap(({ id }) => event.tenant.events.get(id) ?? []);
  const bad = await firstProblem([...events, event], context);
  view.is_verified = true;
  if (bad === undefined || (bad.index === events.length && report.firstBad !== undefined)) {
    return view;
  }
  const { index, problem } = bad;
  const { result, ...details } = problem;
  if (index === events.length) return { ...view, result, event: details };
  const first_bad: JsonObject = { index, id: events[index]?.id ?? "", ...problem };
  return { ...view, result, checked: index + 1, first_bad };
}

/** Who vouches for an event, how and since when, what was taken back, and what still waits for it. */
function readAttestations(
  state: AttesterState,
  params: JsonObject,
  { tenant: name }: { tenant: string },
): JsonValue {
  const id = textParam(params, "event_id");
  const tenant = state.tenants.get(name);
  const event = tenant?.events.get(id);
  const waits = [...(tenant?.missing.get(id)?.waits ?? [])];
  if (event === undefined && waits.length === 0) found(event);
  const attestations = event?.attestations ?? [];
  const view: JsonObject = {
    event_id: id,
    is_known: event !== undefined,
    attestation_count: event === undefined ? 0 : vouchersOf(event).size,
    attestations: attestations.slice(-LISTED_MAX).map(attestationView),
    total: attestations.length,
  };
  if (event !== undefined) view.source = event.source;
  if (waits.length === 0) return view;
  view.waiting = waits.slice(0, LISTED_MAX).map(({ id: of, envelope, due }) => ({
    event_id: of,
    source: envelope.source,
    until: formatInstant(due),
  }));
  view.waiting_total = waits.length;
  return view;
}

/** What an event follows from, `depth` steps back, each step nearest first. */
function readGraph(
  state: AttesterState,
  params: JsonObject,
  { tenant }: { tenant: string },
): JsonValue {
  const event = found(find(state, tenant, params));
  const depth = wholeParam(params, "depth", { min: 1, max: DEPTH_MAX, fallback: 8 });
  const limit = wholeParam(params, "limit", { min: 1, max: NODES_MAX, fallback: 200 });
  const { nodes, edges, is_cut } = graphOf(state, event, { depth, limit });
  return { root: event.id, nodes, edges, is_cut };
}

/** "May I do this because of that event?" Only what is irreversible is ever answered with no. */
async function readMay(
  state: AttesterState,
  settings: Pick<AttesterSettings, "attestationsNeeded">,
  params: JsonObject,
  context: { tenant: string } & Archive,
): Promise<JsonValue> {
  const action = actionParam(params);
  const event = find(state, context.tenant, params);
  if (event === undefined) {
    const text = "no log has shown this event";
    const reasons = [{ reason: "unknown_event", text }];
    return { may: action === "reversible", action, reasons };
  }
  const reasons = await objectionsTo(state, settings, event, context);
  const may = action === "reversible" || reasons.length === 0;
  return { may, action, reasons, event: viewOf(state, event) };
}
