import type { Domain, Envelope } from "@harmovela/envelope";
import { checkAuthorization } from "./authorization.ts";
import { BeliefDomain } from "./beliefs/belief-domain.ts";
import { readControlBody, readEnvelope } from "./body.ts";
import { readPlan, TENANCY } from "./control.ts";
import type { DomainEvent } from "./domain-event.ts";
import type { DomainRules } from "./domain-rules.ts";
import { EventRules } from "./event-rules.ts";
import { type Finding, FindingSink } from "./finding.ts";
import { type Frame, FrameRules } from "./frame.ts";
import { checkGovernance } from "./governance.ts";
import { InterruptionDomain } from "./interruptions/interruption-domain.ts";
import { PlanBook } from "./plan-book.ts";
import type { ObservedLog } from "./provenance/across.ts";
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
  /** Logs of other domains that are read as well; without them the rules between logs are left out. */
  observed?: readonly Observed[];
}

/** A log that is read for what the entries of another one have seen of it. */
export interface Observed {
  domain: Domain;
  stream: string;
  /** It begins in the middle. */
  lenient?: boolean;
}

export interface Checker {
  /** Reads the next stored message of the stream; what it breaks. Never throws. */
  push(record: StoredRecord): Finding[];
  /**
   * Reads the next stored message of an observed log. An entry is judged by what it had seen of it, so
   * before each `push` everything up to that position is read, and nothing beyond.
   */
  observe(domain: Domain, record: StoredRecord): void;
  /** The log ends here; what only its end shows. */
  end(): Finding[];
  readonly report: Report;
}

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
  readonly #interruptions: InterruptionDomain | undefined;
  readonly #beliefs: BeliefDomain | undefined;
  readonly #rules: DomainRules | undefined;
  readonly #observed: ReadonlyMap<Domain, LogChecker>;
  /** The event that the newest entry told the rules of. */
  #event: DomainEvent | undefined;
  readonly #control = new Map<string, number>();
  #entries = 0;
  #foreign = 0;
  #eventCount = 0;
  /** Of the newest `epoch` entry. */
  #isAuthenticated = false;
  #lastSeq = 0;

  constructor(options: CheckOptions) {
    const { domain, stream, lenient = false, maxFindings = MAX_FINDINGS } = options;
    this.#options = options;
    this.#sink = new FindingSink(maxFindings);
    this.#frames = new FrameRules(this.#sink, lenient);
    this.#events = new EventRules(this.#sink, stream, SERVICES[domain], lenient);
    this.#plans = new PlanBook(this.#sink);
    this.#observed = new Map(
      (options.observed ?? []).map((log) => [
        log.domain,
        new LogChecker({ ...log, maxFindings: 0 }),
      ]),
    );
    const base = { sink: this.#sink, plans: this.#plans, isLenient: lenient };
    if (domain === "tasks") {
      const log = this.#observed.get("interruptions");
      const interruptions = log === undefined ? undefined : log.#interruptions;
      this.#tasks = new TaskDomain({ ...base, interruptions });
      this.#rules = this.#tasks;
    } else if (domain === "interruptions") {
      const log = this.#observed.get("tasks");
      const tasks = log === undefined ? undefined : log.#tasks;
      this.#interruptions = new InterruptionDomain({ ...base, tasks });
      this.#rules = this.#interruptions;
    } else if (domain === "beliefs") {
      this.#beliefs = new BeliefDomain(this.#sink, lenient);
      this.#rules = this.#beliefs;
    } else this.#rules = new ProvenanceDomain({ ...base, observed: this.#seenOfOthers() });
  }

  #seenOfOthers(): ReadonlyMap<Domain, ObservedLog> {
    const seen = new Map<Domain, ObservedLog>();
    for (const [domain, log] of this.#observed) {
      seen.set(domain, {
        isLenient: log.#options.lenient === true,
        standingOf: (tenant: string, id: string) => log.#beliefs?.standingOf(tenant, id),
        profiles: (event: DomainEvent) => log.#tasks?.profiles(event),
      });
    }
    return seen;
  }

  observe(domain: Domain, record: StoredRecord): void {
    const log = this.#observed.get(domain);
    if (log === undefined) return;
    log.#event = undefined;
    log.push(record);
    if (log.#event !== undefined) this.#rules?.observe?.(domain, log.#event);
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
    this.#checkSeen(frame);
    if (subject === undefined || subject.domain !== this.#options.domain) {
      this.#sink.add("subject-form", `subject of no entry of ${this.#options.domain}`);
    } else if (subject.area === "log") this.#onEvent(record, frame, subject);
    else this.#onControl(record, frame, subject);
    return this.#sink.current;
  }

  /** What an entry has seen of another log, that log holds. */
  #checkSeen({ seen }: Frame): void {
    for (const [domain, log] of this.#observed) {
      const position = seen.get(domain) ?? 0;
      const isTrimmed = log.#options.lenient === true && log.#lastSeq === 0;
      if (isTrimmed || log.#lastSeq >= position) continue;
      this.#sink.add("seen-beyond", `${domain} seen to ${position}, it ends at ${log.#lastSeq}`);
    }
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
    for (const { rule, seq, subject, message, taskId } of this.#rules?.missing(
      this.#frames.lastAt,
    ) ?? []) {
      this.#sink.at(seq, subject);
      this.#sink.add(rule, message, taskId);
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
      interruptions: this.#interruptions?.total ?? 0,
      openInterruptions: this.#interruptions?.open ?? 0,
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
    const event = { tenant, frame, envelope, owedBy: owedBy(frame), final };
    if (this.#events.checkRefusal(tenant, frame, envelope)) {
      this.#rules?.onRefusal?.(event);
      return;
    }
    if (event.owedBy === undefined) this.#checkRights(envelope);
    this.#event = event;
    this.#rules?.onEvent(event);
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
    else if (kind === "observed") this.#rules?.onObserved?.(body);
    else if (kind === "token_issued") {
      this.#rules?.onTokenIssued?.(tenant ?? "", frame, body);
    } else if (kind === "obligation_failed") this.#onObligationFailed(frame, tenant ?? "", body);
  }

  #onEpoch(record: StoredRecord, body: Record<string, unknown>): void {
    if (body.epoch !== record.seq) {
      this.#sink.add("epoch-position", `the body names epoch ${String(body.epoch)}`);
    }
    const { settings } = body;
    if (isObject(settings) && typeof settings.authenticated === "boolean") {
      this.#isAuthenticated = settings.authenticated;
    }
    this.#rules?.settings(settings);
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
      this.#rules?.onObligationFailed(tenant, id);
    }
  }

  #onBegun(
    record: StoredRecord,
    frame: Frame,
    tenant: string,
    body: Record<string, unknown>,
  ): void {
    this.#frames.judgedEntry(frame.cause);
    // Plans of beliefs are walks, called by what they are.
    const isNamedByType = this.#options.domain !== "beliefs";
    const plan = readPlan(this.#sink, record, tenant, body.plan, isNamedByType);
    if (plan === undefined) return;
    const { envelope } = plan;
    this.#events.checkIdentity(frame, envelope, false);
    const isUnderWay = this.#plans.get(tenant, plan.id) !== undefined;
    this.#plans.begin(plan);
    if (isUnderWay) return;
    this.#events.claimId(tenant, envelope.id, frame.at);
    if (owedBy(frame) === undefined) this.#checkRights(envelope);
    const event = { tenant, frame, envelope, owedBy: owedBy(frame), final: undefined };
    this.#rules?.onBegun(event, plan);
  }

  /** What the sender says of its own rights. */
  #checkRights(envelope: Envelope): void {
    checkGovernance(this.#sink, envelope, this.#isAuthenticated);
    checkAuthorization(this.#sink, envelope);
  }
}

const owedBy = (frame: Frame): string | undefined =>
  frame.cause !== undefined && "owed" in frame.cause ? frame.cause.owed : undefined;
