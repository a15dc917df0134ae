import { isDerivedId, isService, missingConditionalFields, sessionIdOf } from "@harmovela/envelope";
import { type DomainEvent, payloadField } from "../domain-event.ts";
import type { DomainRules, Missing } from "../domain-rules.ts";
import type { FindingSink } from "../finding.ts";
import type { OpenPlan, PlanBook } from "../plan-book.ts";
import { isObject } from "../record.ts";
import { defaultSettings, readSettings } from "../settings.ts";
import { linked } from "../tasks/context.ts";
import { isTerminal } from "../tasks/table.ts";
import type { TaskView } from "../tasks/view.ts";
import { isStopped, type Stops } from "./book.ts";
import { completeCompensation, requestCompensation } from "./compensation.ts";
import { bookOf, type InterruptionContext } from "./context.ts";
import { closeWithTask, expire, interruptWithSession, isExpiry, refuse } from "./derived.ts";
import {
  acknowledge,
  cancel,
  checkOpen,
  checkRequest,
  goOn,
  open,
  resume,
  save,
} from "./lifecycle.ts";
import { findMissing } from "./missing.ts";
import { isOfTree, TreeRules } from "./trees.ts";
import type { Compensation, Hold, InterruptionView, Reason } from "./view.ts";

interface InterruptionDomainOptions {
  sink: FindingSink;
  plans: PlanBook;
  isLenient: boolean;
  tasks: TaskView | undefined;
}

/** Every rule of the domain `interruptions` (spec 5.7, 5.8): what is stopped, resumed and undone. */
export class InterruptionDomain implements DomainRules, InterruptionView {
  readonly #context: InterruptionContext;
  readonly #trees: TreeRules;
  total = 0;

  constructor(options: InterruptionDomainOptions) {
    this.#context = { ...options, settings: defaultSettings(), books: new Map() };
    this.#trees = new TreeRules(this.#context);
  }

  get isLenient(): boolean {
    return this.#context.isLenient;
  }

  /** Interruptions that nothing has closed. */
  get open(): number {
    let count = 0;
    for (const { stops } of this.#context.books.values()) {
      for (const { open } of stops.values()) if (open !== undefined) count += 1;
    }
    return count;
  }

  hold(tenant: string, taskId: string): Hold | undefined {
    const stops = this.#stopsOf(tenant, taskId);
    if (stops?.ending !== undefined) return { since: stops.ending, why: "ending" };
    const { open } = stops ?? {};
    if (open === undefined || !isStopped(open)) return undefined;
    return { since: open.id, why: open.state === "saved" ? "saved" : "force_stop" };
  }

  reason(tenant: string, taskId: string, entryId: string): Reason | undefined {
    return this.#stopsOf(tenant, taskId)?.reasons.get(entryId)?.reason;
  }

  compensation(tenant: string, taskId: string): Compensation | undefined {
    return this.#context.books.get(tenant)?.compensations.get(taskId);
  }

  settings(recorded: unknown): void {
    readSettings(this.#context.settings, recorded);
  }

  onEvent(event: DomainEvent): void {
    this.#forget(event);
    const id = this.#taskId(event);
    if (id === undefined) return;
    if (isOwed(event)) this.#onOwed(event, id);
    else if (event.final !== undefined) {
      this.total += 1;
      this.#trees.finish(event, event.final, id);
    } else this.#onSaid(event, id);
  }

  /** A request for a tree is judged when its plan begins. */
  onBegun(event: DomainEvent, plan: OpenPlan): void {
    const id = this.#taskId(event);
    if (id === undefined) return;
    if (plan.envelope.type !== "interruption.requested") {
      this.#context.sink.add("begun-form", `no tree is interrupted by ${plan.envelope.type}`, id);
      return;
    }
    this.#checkSender(event);
    this.#checkRequested(event, id);
    this.#trees.begin(event, plan, id);
  }

  onRefusal(event: DomainEvent): void {
    const { task_id: id } = event.envelope;
    const error = payloadField(event.envelope, "error");
    if (id === undefined || !isObject(error) || error.code !== "checkpoint_missing") return;
    refuse(this.#context, event, id);
  }

  onObligationFailed(tenant: string): void {
    bookOf(this.#context, tenant).isExcused = true;
  }

  missing(now: number): Iterable<Missing> {
    return findMissing(this.#context, this.#trees, now);
  }

  #stopsOf(tenant: string, taskId: string): Stops | undefined {
    return this.#context.books.get(tenant)?.get(taskId);
  }

  #taskId({ envelope }: DomainEvent): string | undefined {
    const id = linked(envelope, "task_id");
    if (id === undefined) this.#context.sink.add("task-id", `${envelope.type} names no task`);
    return id;
  }

  #onSaid(event: DomainEvent, id: string): void {
    this.#checkSender(event);
    switch (event.envelope.type) {
      case "interruption.requested":
        this.#checkRequested(event, id);
        this.total += 1;
        open(this.#context, event, bookOf(this.#context, event.tenant).at(id, event.frame.at));
        break;
      case "interruption.acknowledged":
        acknowledge(this.#context, event, id);
        break;
      case "interruption.saved":
        save(this.#context, event, id);
        break;
      case "interruption.resumed":
        this.#onResumed(event, id);
        break;
      case "interruption.cancelled":
        cancel(this.#context, event, id);
        break;
      case "compensation.requested":
        requestCompensation(this.#context, event, id);
        break;
      case "compensation.completed":
        completeCompensation(this.#context, event, id);
        break;
      default:
    }
  }

  #checkRequested(event: DomainEvent, id: string): void {
    checkRequest(this.#context, event, id);
    checkOpen(this.#context, event, bookOf(this.#context, event.tenant).at(id, event.frame.at));
  }

  #onResumed(event: DomainEvent, id: string): void {
    const stops = resume(this.#context, event, id);
    if (stops === undefined) return;
    const { trees = [] } = stops.open ?? {};
    if (isOfTree(event) && trees.length > 0) this.#trees.beginResume(event, trees, id);
    goOn(this.#context, event, stops);
  }

  #onOwed(event: DomainEvent, id: string): void {
    const { tenant, envelope, owedBy = "" } = event;
    const { type } = envelope;
    const plan = this.#context.plans.get(tenant, owedBy);
    if (type === "interruption.cancelled") closeWithTask(this.#context, event, id);
    else if (type === "interruption.resumed") this.#trees.resume(event, id);
    else if (type !== "interruption.requested") {
      this.#context.sink.add("owed-type", `the service says ${type} by itself`, id);
    } else if (isExpiry(event)) expire(this.#context, event, id);
    else {
      this.total += 1;
      if (plan === undefined) interruptWithSession(this.#context, event, id);
      else this.#trees.step(event, plan, id);
    }
  }

  /** The fields of the profiles in force, and the session in which it is said (spec 4.2, 5.1). */
  #checkSender(event: DomainEvent): void {
    const { sink, tasks, settings, isLenient } = this.#context;
    const { tenant, envelope } = event;
    const { type, source } = envelope;
    const session = sessionIdOf(envelope);
    const isKnown = session === undefined || (tasks !== undefined && !tasks.isLenient);
    if (!isKnown || isLenient) return;
    if (session !== undefined && !isService(source) && tasks?.hasEnded(tenant, session)) {
      sink.add("session-closed", `${type} of ${session}, which has ended`);
    }
    const profiles = tasks?.profiles(event) ?? settings.defaultProfiles;
    const missing = missingConditionalFields(
      envelope,
      session === undefined ? settings.defaultProfiles : profiles,
    );
    if (missing.length > 0) sink.add("profile-fields", `${type} lacks ${missing.join(", ")}`);
  }

  /** The service forgets after the retention, at its leisure; here it is remembered for twice as long. */
  #forget({ tenant, frame }: DomainEvent): void {
    const { settings, tasks } = this.#context;
    const isLive = (id: string): boolean => {
      if (tasks === undefined) return false;
      const task = tasks.task(tenant, id);
      return task !== undefined && !isTerminal(task.state);
    };
    bookOf(this.#context, tenant).forget(frame.at - 2 * settings.retentionMs, frame.at, isLive);
  }
}

/** The last event of a plan that an agent's envelope began is that envelope, and said by the agent. */
const isOwed = ({ envelope, owedBy, final }: DomainEvent): boolean =>
  owedBy !== undefined && (final === undefined || isDerivedId(envelope.id));
