/** One job from its acceptance to its end: what the worker's function is given, and what is said for it. */
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import { delegate } from "./delegate.ts";
import type { DelegatedTask } from "./delegated-task.ts";
import type { DelegationHandle } from "./delegation-handle.ts";
import type { Job, JobContext, JobFunction } from "./job-context.ts";
import type { JobEnvironment } from "./job-environment.ts";
import type { JobInterruptions } from "./job-interruptions.ts";
import { type Offer, payloadOf } from "./offer.ts";
import { RejectedError } from "./rejected-error.ts";
import type { ResumedFrom } from "./resumed-from.ts";
import { saidOnce } from "./said-once.ts";
import { TaskHandle } from "./task-handle.ts";
import { unlessUnheeded } from "./unheeded.ts";
import type { WorkAgent } from "./work-agent.ts";

/** How a job got to this process. */
export interface Assignment {
  offer: Offer;
  task: DelegatedTask;
  interruptions: JobInterruptions;
  /** Where it goes on; undefined when it begins. */
  resumedFrom: ResumedFrom | undefined;
}

/** Never throws what the job threw: it throws only what kept it from saying so. */
export async function runJob(
  environment: JobEnvironment,
  assignment: Assignment,
  work: JobFunction,
): Promise<void> {
  const { task, interruptions } = assignment;
  const isEnded = await runToEnd(environment, assignment, work);
  if (isEnded || task.hasEnded) await interruptions.forget();
}

/** Whether its end was said here. */
async function runToEnd(
  environment: JobEnvironment,
  { offer, task, interruptions, resumedFrom }: Assignment,
  work: JobFunction,
): Promise<boolean> {
  const isBegun = resumedFrom !== undefined || (await begin(environment, offer, task));
  if (!isBegun) {
    if (interruptions.isAsked && !task.isCancelRequested) await interruptions.save();
    return false;
  }
  if (task.isInterrupted) return await giveUp(environment, task, interruptions, undefined);
  const children: DelegationHandle[] = [];
  const { agent, sessionId } = environment;
  const ctx: JobContext = {
    signal: task.signal,
    resumedFrom,
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
    onInterrupt: (listener) => interruptions.onInterrupt(listener),
    checkpoint: (data) => interruptions.checkpoint(data),
    checkpointAt: (where) => interruptions.checkpointAt(where),
  };
  try {
    const result = await unlessUnheeded(environment, task, work(toJob(offer), ctx));
    // Whoever returns nothing after its signal has stopped and is not done.
    if (result === undefined && task.isInterrupted) throw task.signal.reason;
    interruptions.drained();
    await unlessInterrupted(task, Promise.all(children.map((child) => child.ended())));
    await complete(environment, task, result ?? undefined);
    return true;
  } catch (error) {
    return await giveUp(environment, task, interruptions, error);
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
      if (task.isCancelRequested) await endCancelled(task);
      else if (!task.hasEnded && !task.isInterrupted) await giveBack();
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
      const child = new TaskHandle(environment.agent, String(first));
      await unlessInterrupted(task, child.settled());
    }
  }
}

/** What waits for others ends when the job is to stop for now; its children go on. */
async function unlessInterrupted(task: DelegatedTask, wait: Promise<unknown>): Promise<void> {
  wait.catch(() => undefined);
  const interrupted = task.interrupted.then(() => Promise.reject(task.signal.reason));
  interrupted.catch(() => undefined);
  await Promise.race([wait, interrupted]);
}

/** The job's end, or its pause, without a result. Whether its end was said here. */
async function giveUp(
  environment: JobEnvironment,
  task: DelegatedTask,
  interruptions: JobInterruptions,
  caught: unknown,
): Promise<boolean> {
  const { signal } = task;
  const thrown = toFailure(caught);
  if (task.hasEnded) return false;
  if (task.isCancelRequested) return await endCancelled(task);
  // Its session has ended, and whether the task is to be saved is known when there is another one.
  if (signal.aborted && !task.isInterrupted) await environment.whenInSession();
  if (interruptions.isAsked && (signal.aborted || isStopRefusal(thrown))) {
    await interruptions.save();
    return false;
  }
  const error = signal.aborted ? toFailure(signal.reason) : thrown;
  try {
    await saidOnce(environment, task, () => task.fail(error));
    return true;
  } catch (refusal) {
    // Whatever ended it first has ended it.
    if (!(refusal instanceof RejectedError)) throw refusal;
    return false;
  }
}

/** Refused because the task is stopped (spec 5.7): it cannot fail by that. */
function isStopRefusal(error: HarmovelaError): boolean {
  return (
    error instanceof RejectedError &&
    error.code === "task_error" &&
    error.details?.interruption !== undefined
  );
}

async function endCancelled(task: DelegatedTask): Promise<boolean> {
  try {
    await task.cancel({ now: true, reason: "cancelled on request" });
    return true;
  } catch (refusal) {
    if (!(refusal instanceof RejectedError)) throw refusal;
    return false;
  }
}

/**
 * What a job failed with, as others may see it. The text of a foreign error may quote anything, so only
 * its name is told; whoever wants to say more throws a HarmovelaError.
 */
export function toFailure(caught: unknown): HarmovelaError {
  try {
    if (caught instanceof HarmovelaError) return caught;
    const name: unknown = caught instanceof Error ? caught.name : typeof caught;
    if (typeof name === "string" && /^[A-Za-z]\w{0,63}$/.test(name)) return threw(name, caught);
  } catch {
    // It is made so that looking into it throws: there is nothing more to tell.
  }
  return threw("Error", caught);
}

function threw(name: string, cause: unknown): HarmovelaError {
  return new HarmovelaError("tool_error", `the job threw ${name}`, { cause });
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
