/** One job from its acceptance to its end: what the worker's function is given, and what is said for it. */
import {
  HarmovelaError,
  type JsonObject,
  type JsonValue,
  toHarmovelaError,
} from "@harmovela/failure";
import { delegate } from "./delegate.ts";
import type { DelegatedTask } from "./delegated-task.ts";
import type { DelegationHandle } from "./delegation-handle.ts";
import type { DelegateOptions, Work } from "./delegation-request.ts";
import { type Offer, payloadOf } from "./offer.ts";
import { RejectedError } from "./rejected-error.ts";
import { TaskHandle, type WorkReport } from "./task-handle.ts";
import { unlessUnheeded } from "./unheeded.ts";
import type { Verdict } from "./verdict.ts";
import type { WorkAgent } from "./work-agent.ts";

/** What is to be done. */
export interface Job {
  taskId: string;
  parentTaskId: string | undefined;
  /** Who has given it. */
  delegatedBy: string;
  description: string | undefined;
  context: JsonObject;
  /** RFC 3339. */
  deadline: string | undefined;
  /** The whole of the request's payload. */
  payload: JsonObject;
}

export interface JobContext {
  /**
   * Aborts when the work is not wanted any more: cancellation asked for, the task ended by others,
   * given to somebody else (`task_cancelled`, with the event's id and type in `details`); when the
   * session was lost; when the worker is closed and its time is up.
   */
  readonly signal: AbortSignal;
  /** The session in which this process speaks. */
  readonly sessionId: string | undefined;
  progress(report?: WorkReport): Promise<Verdict>;
  output(report?: WorkReport): Promise<Verdict>;
  /** Gives a part of the work to somebody else; the job ends after it. */
  delegate(
    to: string,
    work: Work,
    options?: Omit<DelegateOptions, "parent">,
  ): Promise<DelegationHandle>;
}

/** Its result completes the task, what it throws fails it; a HarmovelaError says with which code. */
export type JobFunction = (
  job: Job,
  ctx: JobContext,
) => Promise<JsonValue | undefined> | Promise<void> | JsonValue | undefined;

export interface JobEnvironment {
  agent: WorkAgent;
  sessionId: () => string | undefined;
  /** Resolves when the worker has a session again. */
  whenInSession: () => Promise<void>;
  handoffWaitMs: number;
  /** Gives an accepted offer back that was not begun. */
  giveBack: () => Promise<void>;
  /** Told what whoever runs the process must know. */
  report: (error: HarmovelaError) => void;
}

/** Tries of an ending whose outcome is uncertain; one of them at most is accepted. */
const ENDINGS_MAX = 3;

/** Never throws what the job threw: it throws only what kept it from saying so. */
export async function runJob(
  environment: JobEnvironment,
  offer: Offer,
  task: DelegatedTask,
  work: JobFunction,
): Promise<void> {
  if (!(await begin(environment, offer, task))) return;
  const children: DelegationHandle[] = [];
  const { agent, sessionId } = environment;
  const ctx: JobContext = {
    signal: task.signal,
    get sessionId() {
      return sessionId();
    },
    progress: (report) => task.progress(report),
    output: (report) => task.output(report),
    delegate: async (to, part, options) => {
      const handle = await delegate(agent, to, part, { ...options, parent: task.id });
      children.push(handle);
      return handle;
    },
  };
  try {
    const result = await unlessUnheeded(environment, task, work(toJob(offer), ctx));
    await Promise.all(children.map((child) => child.ended()));
    await complete(environment, task, result ?? undefined);
  } catch (error) {
    await giveUp(environment, task, error);
  }
}

/** Whether the task is this agent's to work on now. */
async function begin(
  { agent, handoffWaitMs, giveBack }: JobEnvironment,
  { isHandoffPromised }: Offer,
  task: DelegatedTask,
): Promise<boolean> {
  if (isHandoffPromised) await handedOffWithin(agent, task, handoffWaitMs);
  for (;;) {
    if (task.signal.aborted) {
      if (isCancelRequest(task.signal)) await endCancelled(task);
      else if (!isEnded(task.signal)) await giveBack();
      return false;
    }
    try {
      await task.start();
      return true;
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      if (isUnderWay(error)) return true;
      // Somebody else still owns what was there before it was delegated: until the handoff.
      if (error.code !== "unauthorized" || task.isHandedOff) return false;
      await task.handedOff();
    }
  }
}

/** A task that its delegator had begun goes on without another start (spec 5.4). */
function isUnderWay({ code, details }: RejectedError): boolean {
  return code === "task_error" && ["started", "progress", "output"].includes(String(details?.from));
}

async function handedOffWithin(agent: WorkAgent, task: DelegatedTask, ms: number): Promise<void> {
  let cancel: () => void = () => {};
  const late = new Promise<void>((resolve) => {
    cancel = agent.clock.after(ms, resolve);
  });
  await Promise.race([task.handedOff(), late]);
  cancel();
}

/** A refusal because of children that this job has not given out itself waits for them. */
async function complete(
  environment: JobEnvironment,
  task: DelegatedTask,
  result: JsonValue | undefined,
): Promise<void> {
  for (;;) {
    try {
      await saidOnce(environment, task, () => task.complete(result));
      return;
    } catch (error) {
      const live = error instanceof RejectedError ? error.details?.active_children : undefined;
      if (!Array.isArray(live) || live.length === 0) throw error;
      const [first] = live;
      await new TaskHandle(environment.agent, String(first)).settled();
    }
  }
}

/** The job's end without a result. */
async function giveUp(
  environment: JobEnvironment,
  task: DelegatedTask,
  caught: unknown,
): Promise<void> {
  const { signal } = task;
  if (signal.aborted && isEnded(signal)) return;
  if (signal.aborted && isCancelRequest(signal)) {
    await endCancelled(task);
    return;
  }
  const error = toFailure(signal.aborted ? signal.reason : caught);
  try {
    await saidOnce(environment, task, () => task.fail(error));
  } catch (refusal) {
    // Whatever ended it first has ended it.
    if (!(refusal instanceof RejectedError)) throw refusal;
  }
}

async function endCancelled(task: DelegatedTask): Promise<void> {
  try {
    await task.cancel({ now: true, reason: "cancelled on request" });
  } catch (refusal) {
    if (!(refusal instanceof RejectedError)) throw refusal;
  }
}

/** Says an end until it is known what became of it, in the session that there is by then. */
async function saidOnce(
  { whenInSession }: JobEnvironment,
  task: DelegatedTask,
  say: () => Promise<Verdict>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await whenInSession();
    try {
      await say();
      return;
    } catch (error) {
      const code = toHarmovelaError(error).code;
      const isOver = code === "task_error" && attempt > 1 && task.signal.aborted;
      if (isOver) return;
      const mayAgain = ["effect_outcome_uncertain", "no_service", ...SESSION_CODES].includes(code);
      if (!mayAgain || attempt >= ENDINGS_MAX) throw error;
    }
  }
}

const SESSION_CODES = ["session_closed", "session_error", "session_timeout"];

function isCancelRequest({ reason }: AbortSignal): boolean {
  return stoppedBy(reason) === "task.cancel.requested";
}

/** The task has ended or is another's: there is nothing to say about it. */
function isEnded(signal: AbortSignal): boolean {
  return stoppedBy(signal.reason) !== undefined && !isCancelRequest(signal);
}

function stoppedBy(reason: unknown): unknown {
  return reason instanceof HarmovelaError ? reason.details?.type : undefined;
}

/**
 * What a job failed with, as others may see it. The text of a foreign error may quote anything, so only
 * its name is told; whoever wants to say more throws a HarmovelaError.
 */
export function toFailure(caught: unknown): HarmovelaError {
  if (caught instanceof HarmovelaError) return caught;
  const name = caught instanceof Error ? caught.name : typeof caught;
  const known = /^[A-Za-z]\w{0,63}$/.test(name) ? name : "Error";
  return new HarmovelaError("tool_error", `the job threw ${known}`, { cause: caught });
}

function toJob({ taskId, parentId, delegatedBy, request }: Offer): Job {
  const payload = payloadOf(request.envelope);
  const { work_description: description, context, deadline } = payload;
  return {
    taskId,
    parentTaskId: parentId,
    delegatedBy,
    description: typeof description === "string" ? description : undefined,
    context: typeof context === "object" && context !== null ? (context as JsonObject) : {},
    deadline: typeof deadline === "string" ? deadline : undefined,
    payload,
  };
}
