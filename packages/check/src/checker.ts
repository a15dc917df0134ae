import type { Domain, Envelope } from "@harmovela/envelope";
import { BeliefDomain } from "./beliefs/belief-domain.ts";
import { checkContract, readControlBody, readEnvelope } from "./body.ts";
import { EventRules } from "./event-rules.ts";
import { type Finding, FindingSink } from "./finding.ts";
import { type Frame, FrameRules } from "./frame.ts";
import { checkGovernance } from "./governance.ts";
import { type OpenPlan, PlanBook } from "./plan-book.ts";
import { ProvenanceDomain } from "./provenance/provenance-domain.ts";
import { isObject, type StoredRecord } from "./record.ts";
import type { Report } from "./report.ts";
import { type LogSubject, parseSubject } from "./subject.ts";
import { TaskDomain } from "./task-domain.ts";

export interface CheckOptions {
  domain: Domain;
  /** Name of the log stream, as cursors name it. */
  stream: string;
  /** The log begins in the middle: what came before its first entry is taken as it is. */
  lenient?: boolean;
  /** Nothing is due any more: at the end no plan may be open but for a grace that still runs, no request beyond its window. */
  settled?: boolean;
  /** Findings kept in the report; the rest is counted. Default 1,000. */
  maxFindings?: number;
}

export interface Checker {
  /** Reads the next stored message of the stream; what it breaks. Never throws. */
  push(record: StoredRecord): Finding[];
  /** The log ends here; what only its end shows. */
  end(): Finding[];
  readonly report: Report;
}

/**
 * Kinds of control entries, and whether they belong to a tenant (architecture, section 3). An
 * obligation that failed may be one that never came to name its tenant.
 */
const TENANCY: ReadonlyMap<string, "host" | "tenant" | "either"> = new Map([
  ["epoch", "host"],
  ["position", "host"],
  ["refused", "host"],
  ["intake_gap", "host"],
  ["skipped", "host"],
  ["begun", "tenant"],
  ["token_issued", "tenant"],
  ["observed", "host"],
  ["obligation_failed", "either"],
]);

const SERVICES: Record<Domain, string> = {
  tasks: "service:delegation-coordinator",
  beliefs: "service:belief-tracker",
  interruptions: "service:interruption-manager",
  provenance: "service:provenance-attester",
};

const MAX_FINDINGS = 1_000;

/**
 * Verifies every rule of `RULES` on every prefix of one log, entry by entry, from what is stored
 * alone. Memory grows with what lives or ended within the retention and, up to a bound, with recent ids.
 */
export function createChecker(options: CheckOptions): Checker {
  return new LogChecker(options);
}

/** Checks a whole log. */
export function checkLog(records: Iterable<StoredRecord>, options: CheckOptions): Report {
  const checker = createChecker(options);
  for (const record of records) checker.push(record);
  checker.end();
  return checker.report;
}

class LogChecker implements Checker {
  readonly #options: CheckOptions;
  readonly #sink: FindingSink;
  readonly #frames: FrameRules;
  readonly #events: EventRules;
  readonly #plans: PlanBook;
  readonly #tasks: TaskDomain | undefined;
  readonly #beliefs: BeliefDomain | undefined;
  readonly #provenance: ProvenanceDomain | undefined;
  readonly #control = new Map<string, number>();
  #entries = 0;
  #foreign = 0;
  #eventCount = 0;
  #lastSeq = 0;

  constructor(options: CheckOptions) {
    const { domain, stream, lenient = false, maxFindings = MAX_FINDINGS } = options;
    this.#options = options;
    this.#sink = new FindingSink(maxFindings);
    this.#frames = new FrameRules(this.#sink, lenient);
    this.#events = new EventRules(this.#sink, stream, SERVICES[domain], lenient);
    this.#plans = new PlanBook(this.#sink);
    this.#tasks = domain === "tasks" ? new TaskDomain(this.#sink, this.#plans, lenient) : undefined;
    this.#beliefs = domain === "beliefs" ? new BeliefDomain(this.#sink, lenient) : undefined;
    this.#provenance =
      domain === "provenance" ? new ProvenanceDomain(this.#sink, this.#plans, lenient) : undefined;
  }

  push(record: StoredRecord): Finding[] {
    this.#sink.at(record.seq, record.subject);
    this.#entries += 1;
    this.#lastSeq = record.seq;
    this.#frames.place(record.seq);
    const subject = parseSubject(record.subject);
    const isEpoch = subject?.area === "ctl" && subject.kind === "epoch";
    if (!this.#frames.isOurs(record, isEpoch)) {
      this.#foreign += 1;
      return this.#sink.current;
    }
    const frame = this.#frames.read(record);
    if (subject === undefined || subject.domain !== this.#options.domain) {
      this.#sink.add("subject-form", `subject of no entry of ${this.#options.domain}`);
    } else if (subject.area === "log") this.#onEvent(record, frame, subject);
    else this.#onControl(record, frame, subject);
    return this.#sink.current;
  }

  end(): Finding[] {
    this.#sink.at(0, "");
    if (this.#options.settled !== true) return [];
    const findings: Finding[] = [];
    for (const plan of this.#plans.open()) {
      this.#sink.at(plan.seq, plan.subject);
      this.#sink.add("plan-open", `plan ${plan.id} was never finished`, plan.envelope.task_id);
      findings.push(...this.#sink.current);
    }
    for (const { id, root, seq, subject } of this.#tasks?.overdue(this.#frames.lastAt) ?? []) {
      this.#sink.at(seq, subject);
      this.#sink.add("gentle-open", `cancel request ${id} was never finished`, root.id);
      findings.push(...this.#sink.current);
    }
    for (const request of this.#tasks?.unanswered(this.#frames.lastAt) ?? []) {
      this.#sink.at(request.seq, request.subject);
      const { correlation, target } = request;
      this.#sink.add("exchange-open", `${correlation} to ${target}, who never spoke, is open`);
      findings.push(...this.#sink.current);
    }
    for (const { rule, seq, subject, message } of this.#beliefs?.missing(this.#frames.lastAt) ??
      []) {
      this.#sink.at(seq, subject);
      this.#sink.add(rule, message);
      findings.push(...this.#sink.current);
    }
    return findings;
  }

  get report(): Report {
    return {
      entries: this.#entries,
      foreign: this.#foreign,
      events: this.#eventCount,
      refusals: this.#events.refusals,
      control: Object.fromEntries(this.#control),
      tenants: this.#events.tenants,
      tasks: this.#tasks?.total ?? 0,
      liveTasks: this.#tasks?.live ?? 0,
      plansBegun: this.#plans.begun,
      plansDischarged: this.#plans.discharged,
      plansOpen: this.#plans.open().length,
      lastSeq: this.#lastSeq,
      findings: this.#sink.kept,
      findingsBeyond: this.#sink.beyond,
      findingsByRule: Object.fromEntries(this.#sink.byRule),
    };
  }

  #onEvent(record: StoredRecord, frame: Frame, subject: LogSubject & { area: "log" }): void {
    this.#eventCount += 1;
    this.#frames.judgedEntry(frame.cause);
    const envelope = readEnvelope(record.data, this.#sink);
    const { tenant } = subject;
    if (envelope === undefined) {
      this.#events.skipStamps(tenant);
      return;
    }
    this.#events.checkSubject(subject, envelope);
    this.#events.checkStamps(tenant, envelope, record.seq);
    const final = this.#plans.discharge(tenant, frame, envelope);
    this.#events.checkIdentity(frame, envelope, final !== undefined);
    if (final === undefined) this.#events.claimId(tenant, envelope.id, frame.at);
    if (this.#events.checkRefusal(tenant, frame, envelope)) return;
    if (owedBy(frame) === undefined) checkGovernance(this.#sink, envelope);
    const event = { tenant, frame, envelope, owedBy: owedBy(frame), final };
    this.#tasks?.onEvent(event);
    this.#beliefs?.onEvent(event);
    this.#provenance?.onEvent(event);
  }

  #onControl(record: StoredRecord, frame: Frame, subject: LogSubject & { area: "ctl" }): void {
    const { kind, tenant } = subject;
    const tenancy = TENANCY.get(kind);
    if (tenancy === undefined) {
      this.#sink.add("control-kind", `no control entry is of kind ${kind}`);
      return;
    }
    this.#control.set(kind, (this.#control.get(kind) ?? 0) + 1);
    if (tenancy !== "either" && (tenancy === "host") !== (tenant === undefined)) {
      this.#sink.add("control-tenant", `${kind} of tenant ${tenant ?? "-"}`);
    }
    const body = readControlBody(record.data);
    if (body === undefined) {
      this.#sink.add("control-body", `the body of ${kind} is no JSON object`);
    } else if (kind === "begun") this.#onBegun(record, frame, tenant ?? "", body);
    else if (kind === "epoch") this.#onEpoch(record, body);
    else if (kind === "position") this.#onPosition(body);
    else if (kind === "token_issued") this.#tasks?.onTokenIssued(tenant ?? "", frame, body);
    else if (kind === "observed") this.#provenance?.onObserved(body);
    else if (kind === "obligation_failed") this.#onObligationFailed(frame, tenant ?? "", body);
  }

  #onEpoch(record: StoredRecord, body: Record<string, unknown>): void {
    if (body.epoch !== record.seq) {
      this.#sink.add("epoch-position", `the body names epoch ${String(body.epoch)}`);
    }
    this.#tasks?.settings(body.settings);
    this.#beliefs?.settings(body.settings);
    this.#provenance?.settings(body.settings);
  }

  #onPosition(body: Record<string, unknown>): void {
    const { intake } = body;
    if (typeof intake === "number" && Number.isSafeInteger(intake) && intake >= 0) {
      this.#frames.judgedUpTo(intake);
    } else this.#sink.add("control-body", `position of intake ${String(intake)}`);
  }

  /** Named by the event that could not be logged; its cause names the plan that owed it. */
  #onObligationFailed(frame: Frame, tenant: string, body: Record<string, unknown>): void {
    if (typeof body.id !== "string") {
      this.#sink.add("control-body", "no obligation is named");
      return;
    }
    for (const id of new Set([body.id, owedBy(frame) ?? body.id])) {
      this.#plans.abandon(tenant, id);
      this.#tasks?.onObligationFailed(tenant, id);
      this.#provenance?.onObligationFailed(tenant, id);
    }
    this.#beliefs?.onObligationFailed(tenant);
  }

  #onBegun(
    record: StoredRecord,
    frame: Frame,
    tenant: string,
    body: Record<string, unknown>,
  ): void {
    this.#frames.judgedEntry(frame.cause);
    const plan = this.#readPlan(record, tenant, body.plan);
    if (plan === undefined) return;
    const { envelope } = plan;
    this.#events.checkIdentity(frame, envelope, false);
    const isUnderWay = this.#plans.get(tenant, plan.id) !== undefined;
    this.#plans.begin(plan);
    if (isUnderWay) return;
    this.#events.claimId(tenant, envelope.id, frame.at);
    if (owedBy(frame) === undefined) checkGovernance(this.#sink, envelope);
    const event = { tenant, frame, envelope, owedBy: owedBy(frame), final: undefined };
    this.#tasks?.onBegun(event, plan);
    this.#beliefs?.onBegun(event);
    this.#provenance?.onBegun(event);
  }

  #readPlan(record: StoredRecord, tenant: string, value: unknown): OpenPlan | undefined {
    const plan = isObject(value) ? value : {};
    const { id, kind } = plan;
    if (typeof id !== "string" || typeof kind !== "string" || !isObject(plan.envelope)) {
      this.#sink.add("begun-form", "id, kind or envelope of the plan is missing");
      return undefined;
    }
    const envelope: Envelope | undefined = checkContract(plan.envelope, this.#sink);
    if (envelope === undefined) return undefined;
    if (envelope.id !== id || (this.#tasks !== undefined && envelope.type !== kind)) {
      this.#sink.add("begun-form", `plan ${id} (${kind}) of ${envelope.id} (${envelope.type})`);
      return undefined;
    }
    const { seq, subject } = record;
    return { id, tenant, envelope, seq, subject, isAbandoned: false };
  }
}

const owedBy = (frame: Frame): string | undefined =>
  frame.cause !== undefined && "owed" in frame.cause ? frame.cause.owed : undefined;
