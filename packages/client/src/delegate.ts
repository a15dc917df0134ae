/** Gives work to another agent. */
import { newId } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { DelegationHandle } from "./delegation-handle.ts";
import { type DelegateOptions, type Parties, toRequest, type Work } from "./delegation-request.ts";
import { RejectedError } from "./rejected-error.ts";
import type { TaskHandle } from "./task-handle.ts";
import type { WorkAgent } from "./work-agent.ts";

/**
 * Resolves when the offer is in the log. Work without a parent stands by itself where the service
 * allows it; where a profile in force wants a parent, a root task is submitted for it, which ends as the
 * work does.
 */
export async function delegate(
  agent: WorkAgent,
  to: string,
  work: Work,
  options: DelegateOptions,
): Promise<DelegationHandle> {
  const taskId = options.task_id ?? newId("task");
  const parties: Parties = { taskId, parentId: options.parent, by: agent.name, to };
  try {
    return await request(agent, parties, work, options);
  } catch (error) {
    if (options.parent !== undefined || !wantsParent(error)) throw error;
  }
  const description = typeof work === "string" ? work : work.description;
  const root = await agent.submit({
    target: agent.name,
    ...(description === undefined ? {} : { description }),
  });
  await root.start();
  let handle: DelegationHandle;
  try {
    handle = await request(agent, { ...parties, parentId: root.id }, work, options);
  } catch (error) {
    await root.cancel({ now: true, reason: "the work could not be delegated" });
    throw error;
  }
  endWith(root, handle).catch(() => undefined);
  return handle;
}

async function request(
  agent: WorkAgent,
  parties: Parties,
  work: Work,
  options: DelegateOptions,
): Promise<DelegationHandle> {
  const isHandoffPromised = options.handoff !== false && (await agent.desk.issues());
  const draft = { ...toRequest(parties, work, options, isHandoffPromised), target: parties.to };
  const handle = new DelegationHandle(agent, parties, options);
  await handle.follow();
  let known: string | undefined;
  try {
    const verdict = await agent.publish(draft);
    if (!verdict.duplicate) return handle;
    known = verdict.taskId ?? parties.taskId;
  } catch (error) {
    handle.unfollow();
    throw error;
  }
  // Asked for before, under this id or this key: what there is goes on.
  if (known === parties.taskId) {
    await handle.catchUp();
    return handle;
  }
  handle.unfollow();
  const before = new DelegationHandle(agent, { ...parties, taskId: known }, options);
  await before.follow();
  await before.catchUp();
  return before;
}

/** The root says what became of the work below it. */
async function endWith(root: TaskHandle, handle: DelegationHandle): Promise<void> {
  try {
    await root.complete(await handle.result());
  } catch (error) {
    if (!(error instanceof HarmovelaError)) throw error;
    if (error.code === "task_cancelled") await root.cancel({ now: true });
    else await root.fail(error);
  }
}

function wantsParent(error: unknown): boolean {
  if (!(error instanceof RejectedError) || error.code !== "invalid_envelope") return false;
  const missing = error.details?.missing;
  return Array.isArray(missing) && missing.includes("parent_task_id");
}
