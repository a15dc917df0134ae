import { DelegationRules } from "./delegations/delegation-rules.ts";
import { BudgetRules } from "./families/budgets.ts";
import { ExchangeRules } from "./families/exchanges.ts";
import { SessionRules } from "./families/sessions.ts";
import { SubscriptionRules } from "./families/subscriptions.ts";
import { ToolCallRules } from "./families/tool-calls.ts";
import type { FindingSink } from "./finding.ts";
import type { Frame } from "./frame.ts";
import type { OpenPlan, PlanBook } from "./plan-book.ts";
import { defaultSettings, readSettings } from "./settings.ts";
import type { TaskContext, TaskEvent } from "./tasks/context.ts";
import { Forest } from "./tasks/forest.ts";
import type { GentlePlan } from "./tasks/task.ts";
import { TaskRules } from "./tasks/task-rules.ts";

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

/** Every rule of the domain `tasks`: tasks, delegations and the families around them. */
export class TaskDomain {
  readonly #context: TaskContext;
  readonly #tasks: TaskRules;
  readonly #delegations: DelegationRules;
  readonly #sessions: SessionRules;
  readonly #subscriptions: SubscriptionRules;
  readonly #exchanges: ExchangeRules;
  readonly #calls: ToolCallRules;
  readonly #budgets: BudgetRules;

  constructor(sink: FindingSink, plans: PlanBook, isLenient: boolean) {
    const settings = defaultSettings();
    const base = { sink, plans, isLenient, settings, forest: new Forest() };
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

  overdue(now: number): GentlePlan[] {
    return this.#tasks.overdue(now);
  }

  /** Requests that should have been refused by `now`. */
  unanswered(now: number): ReturnType<ExchangeRules["overdue"]> {
    return this.#exchanges.overdue(now);
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
