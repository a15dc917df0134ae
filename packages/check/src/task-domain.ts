import type { Domain } from "@harmovela/envelope";
import { DelegationRules } from "./delegations/delegation-rules.ts";
import type { DomainRules, Missing } from "./domain-rules.ts";
import { BudgetRules } from "./families/budgets.ts";
import { ExchangeRules } from "./families/exchanges.ts";
import { SessionRules } from "./families/sessions.ts";
import { SubscriptionRules } from "./families/subscriptions.ts";
import { ToolCallRules } from "./families/tool-calls.ts";
import type { FindingSink } from "./finding.ts";
import type { Frame } from "./frame.ts";
import type { InterruptionView } from "./interruptions/view.ts";
import type { OpenPlan, PlanBook } from "./plan-book.ts";
import { defaultSettings, readSettings } from "./settings.ts";
import type { Instance, TaskContext, TaskEvent } from "./tasks/context.ts";
import { Forest } from "./tasks/forest.ts";
import type { Task } from "./tasks/task.ts";
import { TaskRules } from "./tasks/task-rules.ts";
import type { TaskView } from "./tasks/view.ts";

/** What the service says by itself, tasks aside: answers, expiries and ends. */
const OWED: ReadonlySet<string> = new Set([
  "session.ready",
  "session.error",
  "capabilities.declared",
  "subscription.created",
  "subscription.cancelled",
  "command.accepted",
  "command.rejected",
  "query.rejected",
  "delegation.rejected",
]);

interface TaskDomainOptions {
  sink: FindingSink;
  plans: PlanBook;
  isLenient: boolean;
  interruptions: InterruptionView | undefined;
}

/** Every rule of the domain `tasks`: tasks, delegations and the families around them. */
export class TaskDomain implements DomainRules, TaskView {
  readonly #context: TaskContext;
  readonly #tasks: TaskRules;
  readonly #delegations: DelegationRules;
  readonly #sessions: SessionRules;
  readonly #subscriptions: SubscriptionRules;
  readonly #exchanges: ExchangeRules;
  readonly #calls: ToolCallRules;
  readonly #budgets: BudgetRules;

  constructor(options: TaskDomainOptions) {
    const base = { ...options, settings: defaultSettings(), forest: new Forest() };
    this.#sessions = new SessionRules(base);
    const context = { ...base, sessions: this.#sessions };
    this.#context = context;
    this.#tasks = new TaskRules(context);
    this.#delegations = new DelegationRules(context);
    this.#subscriptions = new SubscriptionRules(context, this.#sessions);
    this.#exchanges = new ExchangeRules(context);
    this.#calls = new ToolCallRules(context);
    this.#budgets = new BudgetRules(context);
  }

  get total(): number {
    return this.#context.forest.total;
  }

  get live(): number {
    return this.#context.forest.live;
  }

  get isLenient(): boolean {
    return this.#context.isLenient;
  }

  tenants(): Iterable<string> {
    return this.#context.forest.tenants();
  }

  task(tenant: string, id: string): Task | undefined {
    return this.#context.forest.get(tenant, id);
  }

  tasks(tenant: string): Iterable<Task> {
    return this.#context.forest.of(tenant);
  }

  ownSession(event: TaskEvent): Instance | undefined {
    return this.#sessions.own(event);
  }

  hasEnded(tenant: string, sessionId: string): boolean {
    return this.#sessions.state(tenant, sessionId) === "ended";
  }

  profiles(event: TaskEvent): readonly string[] {
    return this.#sessions.profiles(event);
  }

  resume(event: TaskEvent): void {
    this.#tasks.onResumed(event);
  }

  observe(domain: Domain, event: TaskEvent): void {
    const { type } = event.envelope;
    if (domain === "interruptions" && type === "interruption.resumed") this.resume(event);
  }

  /** The settings that an `epoch` entry records are those in force from there on. */
  settings(recorded: unknown): void {
    readSettings(this.#context.settings, recorded);
  }

  onEvent(event: TaskEvent): void {
    this.#forget(event.frame.at);
    if (event.owedBy === undefined) this.#judge(event);
    else this.#checkOwed(event);
    const profiles = this.#sessions.profiles(event);
    this.#sessions.onEvent(event);
    this.#tasks.onEvent(event);
    this.#delegations.onEvent(event, profiles);
    this.#subscriptions.onEvent(event);
    this.#exchanges.onEvent(event);
    this.#calls.onEvent(event);
    this.#budgets.onEvent(event);
  }

  /** An envelope of the intake is judged, and paid for, when its plan begins. */
  onBegun(event: TaskEvent, plan: OpenPlan): void {
    this.#forget(event.frame.at);
    if (event.owedBy === undefined) this.#judge(event);
    this.#exchanges.hear(event);
    this.#tasks.onBegun(event, plan);
  }

  onTokenIssued(tenant: string, frame: Frame, body: Record<string, unknown>): void {
    this.#forget(frame.at);
    this.#delegations.onTokenIssued(tenant, frame, body);
  }

  onObligationFailed(tenant: string, id: string): void {
    this.#tasks.onObligationFailed(tenant, id);
    this.#exchanges.onObligationFailed(tenant);
  }

  /** Cancel requests that should have been finished by `now`, and requests that should have been refused. */
  *missing(now: number): Generator<Missing> {
    for (const { id, root, seq, subject } of this.#tasks.overdue(now)) {
      const message = `cancel request ${id} was never finished`;
      yield { rule: "gentle-open", seq, subject, message, taskId: root.id };
    }
    for (const { seq, subject, correlation, target } of this.#exchanges.overdue(now)) {
      const message = `${correlation} to ${target}, who never spoke, is open`;
      yield { rule: "exchange-open", seq, subject, message };
    }
  }

  /** What was over longer ago than the retention is forgotten, and its ids may be used again. */
  #forget(at: number): void {
    const { forest, settings } = this.#context;
    const before = at - settings.retentionMs;
    for (const { tenant, task } of forest.forget(before)) {
      this.#delegations.forgetTask(tenant, task.id);
    }
    this.#delegations.forget(before);
    this.#sessions.forget(before);
  }

  #judge(event: TaskEvent): void {
    this.#sessions.judge(event);
    this.#budgets.spend(event);
  }

  #checkOwed({ envelope, final }: TaskEvent): void {
    const { type, task_id: id } = envelope;
    if (final !== undefined || type.startsWith("task.") || OWED.has(type)) return;
    this.#context.sink.add("owed-type", `the service says ${type} by itself`, id);
  }
}
