/** An agent on the bus: it says things and learns what became of them, observes, asks, and works on tasks. */
import {
  type Bus,
  type Clock,
  intakeSubject,
  liveSubject,
  NO_TENANT,
  systemClock,
} from "@harmovela/bus";
import { type Domain, domainOf, isId, newId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { type Access, openAccess } from "./access.ts";
import { Beliefs } from "./beliefs.ts";
import { CheckpointStore } from "./checkpoint-store.ts";
import { type CompensateOptions, toCompensated, toCompensation } from "./compensation.ts";
import { formatCursor, parseCursor } from "./cursor.ts";
import { delegate } from "./delegate.ts";
import type { DelegationHandle } from "./delegation-handle.ts";
import type { DelegateOptions, Work } from "./delegation-request.ts";
import {
  assertAcceptable,
  completeDraft,
  type Draft,
  encodeEnvelope,
  type Sender,
} from "./draft.ts";
import { taskOf } from "./filter.ts";
import { Interruptions } from "./interruptions.ts";
import type { JobFunction } from "./job-context.ts";
import type { Observed } from "./lane.ts";
import type { Logs } from "./logs.ts";
import { Observation, type ObserveOptions } from "./observation.ts";
import { Outbox } from "./outbox.ts";
import { askService, type Reading, type ReadOptions } from "./reads.ts";
import { RETRY_DEFAULTS, type RetryOptions } from "./retry.ts";
import { type SubmitSpec, type TaskAgent, TaskHandle } from "./task-handle.ts";
import { TaskStream } from "./task-stream.ts";
import { TaskWatch } from "./task-watch.ts";
import { TokenDesk } from "./token-desk.ts";
import type { Stored, Verdict } from "./verdict.ts";
import type { WorkAgent } from "./work-agent.ts";
import { Worker } from "./worker.ts";
import type { WorkerOptions } from "./worker-options.ts";

export interface AgentOptions {
  /** The name under which it speaks, as in `agent:planner`: the `source` of its envelopes. */
  agent: string;
  /** When it is given it is also stamped as `tenant_id`. Default "default". */
  tenant?: string;
  /**
   * "streams": it reads logs and keeps checkpoints as streams, for which it needs rights to JetStream.
   * "services": the services do both for it; what a key of an agent allows is enough. Default "streams",
   * for `connect` with `auth` "services".
   */
  access?: Access;
  retry?: RetryOptions;
  /** Envelopes without a verdict; further calls wait. Default 512. */
  maxOutstanding?: number;
  /** How long `close` waits for verdicts, and for jobs of workers that say nothing of it, milliseconds. Default 5,000. */
  drainMs?: number;
  clock?: Clock;
  /** For the jitter of sending again, [0, 1). */
  random?: () => number;
}

export interface PublishOptions {
  /** false sends also what can never be accepted, to be refused by the judge. Default true. */
  validate?: boolean;
  /** W3C trace context, carried on. */
  traceparent?: string;
}

export interface TasksOptions extends Pick<ObserveOptions, "from" | "onGap"> {}

const OUTSTANDING_MAX = 512;
const DRAIN_MS = 5_000;
/** Filters whose last position is remembered for `from: "last"`. */
const REMEMBERED_MAX = 256;

export class Agent {
  readonly name: string;
  readonly tenant: string;
  /** What is held true: asserted, revised, retracted, watched, and asked about before acting (spec 6). */
  readonly beliefs: Beliefs;
  /** Work that is to stop and go on later: asked for, resumed, given up, looked into (spec 5.7). */
  readonly interruptions: Interruptions;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #sender: Sender;
  readonly #drainMs: number;
  readonly #noServiceMs: number;
  readonly #closeBus: () => Promise<void>;
  readonly #outbox: Outbox;
  readonly #logs: Logs;
  readonly #observations = new Set<Observation>();
  readonly #lastCursors = new Map<string, readonly string[]>();
  /** The newest position that a verdict has named, for each domain: later reads must hold it. */
  readonly #known = new Map<Domain, number>();
  readonly #tasks: TaskAgent;
  readonly #work: WorkAgent;
  readonly #workers = new Set<Worker>();
  #closing: Promise<void> | undefined;

  /** @internal Use `connect` or `openAgent`. */
  constructor(bus: Bus, options: AgentOptions, closeBus: () => Promise<void>) {
    const { agent, tenant = "default", clock = systemClock, random = Math.random } = options;
    // What concerns no tenant stands under that name in the logs; no service hears it as a tenant's.
    if (!isId(agent) || !isId(tenant) || tenant === NO_TENANT)
      throw new HarmovelaError("invalid_argument", "agent and tenant must be ids (spec 1.3)");
    const bounds = { ...RETRY_DEFAULTS, ...options.retry };
    this.name = agent;
    this.tenant = tenant;
    this.#bus = bus;
    this.#clock = clock;
    this.#sender = { agent, tenant, stampsTenant: options.tenant !== undefined };
    this.#drainMs = options.drainMs ?? DRAIN_MS;
    this.#noServiceMs = bounds.noServiceMs;
    this.#closeBus = closeBus;
    const access = openAccess(options.access ?? "streams", {
      bus,
      clock,
      tenant,
      agent,
      known: (domain) => this.#known.get(domain),
      read: (verb, params, bounds) => this.read("interruptions", verb, params, bounds),
    });
    this.#logs = access.logs;
    const context = { bus, clock, bounds, random };
    this.#outbox = new Outbox(context, options.maxOutstanding ?? OUTSTANDING_MAX);
    this.#tasks = {
      watch: new TaskWatch(() =>
        this.#observe({ types: "task.*", domains: ["tasks"], from: "now" }),
      ),
      publish: (draft) => this.#publishJudged(draft),
      submit: (spec) => this.submit(spec),
      readTask: (taskId) => this.task(taskId),
      entryAt: (taskId, seq) => this.#entryAt(taskId, seq),
    };
    this.beliefs = new Beliefs({
      name: agent,
      publish: (draft) => this.#publishJudged(draft),
      read: (verb, params, bounds) => this.read("beliefs", verb, params, bounds),
      observe: (wanted) => this.#observe(wanted),
      note: (cursor) => this.#note(cursor),
    });
    const interruptionWatch = new TaskWatch(() =>
      this.#observe({ types: "interruption.*", domains: ["interruptions"], from: "now" }),
    );
    this.interruptions = new Interruptions({
      watch: interruptionWatch,
      publish: (draft) => this.#publishJudged(draft),
      read: (verb, params) => this.read("interruptions", verb, params),
    });
    this.#work = {
      ...this.#tasks,
      name: agent,
      clock,
      checkpoints: new CheckpointStore(access.shelf, tenant),
      interruptions: this.interruptions,
      interruptionWatch,
      desk: new TokenDesk(
        (verb, params, bounds) => this.read("tasks", verb, params, bounds),
        clock,
      ),
      watch: new TaskWatch(() =>
        this.#observe({ types: ["task.*", "delegation.*"], domains: ["tasks"], from: "now" }),
      ),
      read: (verb, params, bounds) => this.read("tasks", verb, params, bounds),
      observe: (wanted) => this.#observe(wanted),
      note: (cursor) => this.#note(cursor),
      sayLive: (draft) => this.#sayLive(draft),
    };
  }

  /** Whether the connection is up now. It comes back by itself. */
  get isConnected(): boolean {
    return this.#bus.isConnected;
  }

  /** Envelopes without a verdict, those that wait for their turn included. */
  get outstanding(): number {
    return this.#outbox.size;
  }

  /**
   * Says something. Resolves with the verdict; for `event.*` and `session.heartbeat`, which nobody
   * acknowledges, when it is stored. Throws what can never be accepted before it is sent,
   * `RejectedError` when it was refused, `no_service` when nobody judges its domain,
   * `effect_outcome_uncertain` when there is no verdict in all the time that is tried. Envelopes of one
   * task keep their order, also when they are sent again.
   */
  async publish(draft: Draft, options: PublishOptions = {}): Promise<Verdict | Stored> {
    const envelope = completeDraft(draft, this.#sender);
    const bytes = encodeEnvelope(envelope);
    if (options.validate !== false) assertAcceptable(bytes, this.#sender);
    const { id, type } = envelope;
    const { agent: source, tenant } = this.#sender;
    const subject = intakeSubject({ tenant, domain: domainOf(type), source, type });
    const { traceparent } = options;
    const verdict = await this.#outbox.publish(
      { id, type, subject, bytes, ...(traceparent === undefined ? {} : { traceparent }) },
      taskOf(envelope),
    );
    if ("cursor" in verdict) this.#note(verdict.cursor);
    return verdict;
  }

  /** Observes the logs: history from a start on, then live. Nothing given: everything of the tenant. */
  subscribe(options: ObserveOptions = {}): Observation {
    return this.#observe(options, (closed) => this.#remember(closed));
  }

  #observe(
    options: ObserveOptions,
    onClosed: (observation: Observation) => void = () => {},
  ): Observation {
    this.#assertOpen();
    const observation = new Observation(
      {
        logs: this.#logs,
        clock: this.#clock,
        lastOf: (key) => this.#lastCursors.get(key),
        onClosed: (closed) => {
          this.#observations.delete(closed);
          onClosed(closed);
        },
      },
      options,
    );
    this.#observations.add(observation);
    return observation;
  }

  /** Asks a service. The answer holds at least what this agent's own verdicts have named. */
  read(
    domain: Domain,
    verb: string,
    params: JsonObject = {},
    options: ReadOptions = {},
  ): Promise<Reading> {
    const seq = this.#known.get(domain);
    const known: JsonObject = seq === undefined ? {} : { cursor: formatCursor({ domain, seq }) };
    const context = {
      bus: this.#bus,
      clock: this.#clock,
      tenant: this.tenant,
      agent: this.name,
      noServiceMs: this.#noServiceMs,
    };
    return askService(context, domain, verb, { ...known, ...params }, options);
  }

  /** The task as it stands. Throws `task_error` when there is none. */
  task(taskId: string): Promise<Reading> {
    return this.read("tasks", "task", { task_id: taskId });
  }
  /** The task and what is below it. */
  tree(taskId: string): Promise<Reading> {
    return this.read("tasks", "tree", { task_id: taskId });
  }
  /** The task's last events. */
  history(taskId: string): Promise<Reading> {
    return this.read("tasks", "history", { task_id: taskId });
  }
  /** One sentence: what the task waits for, or how it ended. */
  why(taskId: string): Promise<Reading> {
    return this.read("tasks", "why", { task_id: taskId });
  }

  /** Submits a task. Its handle misses nothing of what happens to it. */
  async submit(spec: SubmitSpec): Promise<TaskHandle> {
    const taskId = spec.task_id ?? newId("task");
    return this.#followed(taskId, toSubmission(taskId, spec));
  }

  /** A task that exists already. */
  handle(taskId: string): TaskHandle {
    return new TaskHandle(this.#tasks, taskId);
  }

  /**
   * Tasks submitted with this agent as their target, oldest first: those that are still open, then new
   * ones. Work that this agent had begun before comes again, with its state in `stateAtOffer`.
   */
  tasks(options: TasksOptions = {}): TaskStream {
    const observation = this.#observe({
      ...options,
      from: options.from ?? "start",
      types: "task.submitted",
      target: this.name,
      domains: ["tasks"],
    });
    return new TaskStream(this.#tasks, this.name, this.#clock, observation);
  }

  /**
   * Offers work to another agent (spec 5.6); resolves when the offer is in the log. Throws
   * `RejectedError` when it may not be offered. The handle tells what becomes of it.
   */
  async delegate(to: string, work: Work, options: DelegateOptions = {}): Promise<DelegationHandle> {
    this.#assertOpen();
    return await delegate(this.#work, to, work, options);
  }

  /**
   * Asks for what a task has done to be undone, once for each reason (spec 5.8); the original has ended or
   * is interrupted. The handle is of the task that undoes it, which its target finds among its `tasks`.
   */
  async compensate(originalTaskId: string, options: CompensateOptions): Promise<TaskHandle> {
    const draft = toCompensation(originalTaskId, options);
    return this.#followed(draft.task_id, draft);
  }

  /** Says that it is undone: completes the task that undoes it if that is still open (spec 5.8). */
  compensated(taskId: string, originalTaskId: string): Promise<Verdict> {
    return this.#publishJudged(toCompensated(taskId, originalTaskId));
  }

  /**
   * Works for others: opens a session, takes what is delegated to this agent, as many jobs at a time as
   * `concurrency` says, and says what became of each. Resolves when it takes offers.
   */
  async worker(options: WorkerOptions, work: JobFunction): Promise<Worker> {
    this.#assertOpen();
    const worker = new Worker(this.#work, options, work);
    this.#workers.add(worker);
    try {
      await worker.open();
    } catch (error) {
      this.#workers.delete(worker);
      await worker.close();
      throw error;
    }
    worker.closed.then(
      () => this.#workers.delete(worker),
      () => undefined,
    );
    return worker;
  }

  /** Ends its workers, takes nothing more, waits for verdicts that are due, ends what observes, closes its connection. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal The connection has come back. */
  onReconnected(): void {
    this.#outbox.onReconnected();
    for (const observation of this.#observations) observation.onReconnected();
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.closeWithin(this.#drainMs)));
    await this.#outbox.close(this.#drainMs);
    await Promise.all([...this.#observations].map((observation) => observation.close()));
    for (const watch of [this.#tasks.watch, this.#work.watch, this.#work.interruptionWatch])
      watch.close(new HarmovelaError("closed", "the agent is closed"));
    await this.#closeBus();
  }

  /** Says what makes a task, with a handle that misses nothing of it. */
  async #followed(taskId: string, draft: Draft): Promise<TaskHandle> {
    this.#assertOpen();
    const handle = new TaskHandle(this.#tasks, taskId);
    await handle.follow();
    try {
      await this.#publishJudged(draft);
    } catch (error) {
      handle.unfollow();
      throw error;
    }
    return handle;
  }

  async #publishJudged(draft: Draft): Promise<Verdict> {
    const verdict = await this.publish(draft);
    if ("cursor" in verdict) return verdict;
    throw new HarmovelaError("invariant_broken", "whatever is judged has a verdict");
  }

  #sayLive(draft: Draft): void {
    const envelope = completeDraft(draft, this.#sender);
    const { agent: source, tenant } = this.#sender;
    const subject = liveSubject({ tenant, source, type: envelope.type });
    this.#bus.publish(subject, {}, encodeEnvelope(envelope));
  }

  /** Read like everything else: whoever may observe a tenant needs no right to read positions. */
  async #entryAt(taskId: string, seq: number): Promise<Observed | undefined> {
    const from = formatCursor({ domain: "tasks", seq: Math.max(0, seq - 1) });
    await using one = this.#observe({
      task_id: taskId,
      domains: ["tasks"],
      from,
      maxBuffered: 1,
      // It is not there any more, and the next about the task may never come.
      onGap: () => void one.close(),
    });
    const { value } = await one.next();
    return value?.cursor === formatCursor({ domain: "tasks", seq }) ? value : undefined;
  }

  #note(cursor: string): void {
    const position = parseCursor(cursor);
    if (position && position.seq > (this.#known.get(position.domain) ?? 0))
      this.#known.set(position.domain, position.seq);
  }

  /** For `from: "last"`. */
  #remember({ key, cursors }: Observation): void {
    if (cursors.length === 0) return;
    this.#lastCursors.delete(key);
    this.#lastCursors.set(key, cursors);
    if (this.#lastCursors.size <= REMEMBERED_MAX) return;
    const [oldest] = this.#lastCursors.keys();
    if (oldest !== undefined) this.#lastCursors.delete(oldest);
  }

  #assertOpen(): void {
    if (this.#closing) throw new HarmovelaError("closed", "the agent is closed");
  }
}

function toSubmission(taskId: string, spec: SubmitSpec): Draft {
  const { target, description, timeout_ms, parent_task_id, payload, envelope } = spec;
  const body: JsonObject = { ...payload, task_id: taskId, state: "submitted" };
  if (description !== undefined) body.description = description;
  if (timeout_ms !== undefined) body.timeout_ms = timeout_ms;
  return {
    ...envelope,
    type: "task.submitted",
    task_id: taskId,
    ...(target === undefined ? {} : { target }),
    ...(parent_task_id === undefined ? {} : { parent_task_id }),
    payload: body,
  };
}
