import { type Envelope, isHarness } from "@harmovela/envelope";
import { payloadField, payloadText, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { after } from "../tasks/deadline.ts";
import { forgetOld, notOld } from "./forget.ts";
import { SnapshotVersions } from "./snapshot-versions.ts";

interface Exchange {
  readonly at: number;
  readonly tenant: string;
  readonly correlation: string;
  /** Sequence and subject of the request. */
  readonly seq: number;
  readonly subject: string;
  readonly target: string;
  readonly scope: string | undefined;
  /** When the service may refuse it for want of an answer. */
  readonly windowEnd: number;
  isAccepted: boolean;
  /** An obligation failed meanwhile, maybe the one to refuse it. */
  isExcused: boolean;
}

/** What the runtime itself says, which a harness may repeat (spec 5.9). */
const ECHOED: ReadonlySet<string> = new Set([
  "command.accepted",
  "command.rejected",
  "query.response",
  "query.rejected",
]);

/** What only a command that nobody has accepted allows. */
const EARLY: ReadonlySet<string> = new Set(["command.accepted", "command.rejected"]);

/** Commands and queries by kind and correlation (spec 5.9). */
export class ExchangeRules {
  readonly #context: TaskContext;
  readonly #live = { command: new Map<string, Exchange>(), query: new Map<string, Exchange>() };
  readonly #versions = new SnapshotVersions();
  /** Agents that have said anything, by tenant. */
  readonly #spoken = new Set<string>();

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** Who speaks is known as a target. */
  hear({ tenant, envelope, owedBy }: TaskEvent): void {
    if (owedBy === undefined) this.#spoken.add(keyOf(tenant, envelope.source));
  }

  onObligationFailed(tenant: string): void {
    for (const exchange of this.#all()) if (exchange.tenant === tenant) exchange.isExcused = true;
  }

  /** Requests whose target is unknown and whose window has passed at `now`. */
  overdue(now: number): Exchange[] {
    return [...this.#all()].filter(
      ({ tenant, target, windowEnd, isAccepted, isExcused }) =>
        windowEnd < now && !isAccepted && !isExcused && !this.#spoken.has(keyOf(tenant, target)),
    );
  }

  *#all(): IterableIterator<Exchange> {
    for (const live of Object.values(this.#live)) yield* live.values();
  }

  onEvent(event: TaskEvent): void {
    const { type, source } = event.envelope;
    this.hear(event);
    const kind = type.startsWith("command.") ? "command" : "query";
    if (kind === "query" && !type.startsWith("query.")) return;
    const isEcho = event.owedBy === undefined && isHarness(source) && ECHOED.has(type);
    if (type === `${kind}.requested`) this.#request(event, kind);
    else if (!isEcho) this.#answer(event, this.#live[kind]);
  }

  #request(event: TaskEvent, kind: "command" | "query"): void {
    const { sink, settings } = this.#context;
    const { tenant, envelope, frame } = event;
    const { target, correlation_id: correlation } = envelope;
    const scope = payloadText(envelope, "query_scope");
    if (!target || !correlation || (kind === "query" && scope === undefined)) {
      sink.add("exchange-fields", `a ${kind} without target, correlation_id or query_scope`);
      return;
    }
    const live = this.#live[kind];
    const key = keyOf(tenant, correlation);
    const before = frame.at - settings.retentionMs;
    if (notOld(live.get(key), before)) {
      sink.add("exchange-live", `${correlation} belongs to a live ${kind}`);
    }
    forgetOld(live, before);
    live.delete(key);
    const named = payloadField(envelope, "negotiation_window_ms");
    const windowMs = typeof named === "number" ? named : settings.negotiationWindowMs;
    // A request is answered for want of an answer before it is forgotten.
    const windowEnd = after(frame.at, Math.min(windowMs, settings.retentionMs));
    const { at, seq, subject } = frame;
    const request = { at, tenant, correlation, seq, subject, target, scope, windowEnd };
    live.set(key, { ...request, isAccepted: false, isExcused: false });
  }

  #answer(event: TaskEvent, live: Map<string, Exchange>): void {
    const { sink, settings, isLenient } = this.#context;
    const { tenant, envelope, frame, owedBy } = event;
    const { type, source } = envelope;
    const correlation = correlationOf(envelope) ?? "";
    const key = keyOf(tenant, correlation);
    const known = live.get(key);
    // What the service owes at the last moment it may write a little later.
    const exchange = owedBy === undefined ? notOld(known, frame.at - settings.retentionMs) : known;
    if (exchange === undefined) {
      if (!isLenient) sink.add("exchange-unknown", `${type} answers no live ${correlation}`);
      return;
    }
    if (owedBy === undefined && source !== exchange.target) {
      sink.add("exchange-target", `${type} by ${source}, the target is ${exchange.target}`);
      return;
    }
    if (exchange.isAccepted && (EARLY.has(type) || owedBy !== undefined)) {
      sink.add("exchange-order", `${type} of ${correlation} after command.accepted`);
      return;
    }
    if (owedBy !== undefined) this.#checkWindow(event, exchange, correlation);
    // What a harness says as a target is logged and changes nothing.
    else if (isHarness(source)) return;
    if (type === "query.response") this.#checkVersion(event, exchange);
    if (type === "command.accepted") exchange.isAccepted = true;
    else live.delete(key);
  }

  #checkWindow({ envelope, frame }: TaskEvent, exchange: Exchange, correlation: string): void {
    if (envelope.type === "command.accepted" || frame.at >= exchange.windowEnd) return;
    const message = `${correlation} is refused at ${frame.at}, its window ends at ${exchange.windowEnd}`;
    this.#context.sink.add("exchange-window", message);
  }

  #checkVersion({ tenant, envelope, frame }: TaskEvent, { target, scope }: Exchange): void {
    const version = payloadField(envelope, "snapshot_version");
    const key = `${keyOf(tenant, `${target.length}:${target}`)}${scope ?? ""}`;
    const { retentionMs } = this.#context.settings;
    const newer = this.#versions.answer(key, version, { at: frame.at, retentionMs });
    if (newer === undefined) return;
    const message = `snapshot ${String(version)} of ${target} after ${newer}`;
    this.#context.sink.add("query-version", message);
  }
}

/** Of an answer: the envelope says it, or the payload does. */
function correlationOf(envelope: Envelope): string | undefined {
  return envelope.correlation_id || payloadText(envelope, "correlation_id");
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;
