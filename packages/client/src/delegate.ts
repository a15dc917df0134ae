/** Gives work to another agent. */
import { isId, newId } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { DelegationHandle } from "./delegation-handle.ts";
import { type DelegateOptions, type Parties, toRequest, type Work } from "./delegation-request.ts";
import { RejectedError } from "./rejected-error.ts";
import type { TaskHandle } from "./task-handle.ts";
import type { WorkAgent } from "./work-agent.ts";

/** Times that lost work is given out again at most. */
const AGAIN_MAX = 100;

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
  checkAgain(options);
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
  attempt = 1,
): Promise<DelegationHandle> {
  const isHandoffPromised = options.handoff !== false && (await agent.desk.issues());
  const { key, again: times = 0 } = options;
  const keyed = key === undefined ? options : { ...options, key: keyOf(key, attempt) };
  const draft = { ...toRequest(parties, work, keyed, isHandoffPromised), target: parties.to };
  const again = (): Promise<DelegationHandle> =>
    request(agent, { ...parties, taskId: newId("task") }, work, options, attempt + 1);
  const more = attempt <= times ? again : undefined;
  const handle = new DelegationHandle(agent, parties, options, more);
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
  const before = new DelegationHandle(agent, { ...parties, taskId: known }, options, more);
  await before.follow();
  await before.catchUp();
  return before;
}

/** Each time that work is given out has a key of its own, so that a delegator that starts again finds it. */
function keyOf(key: string, attempt: number): string {
  return attempt === 1 ? key : `${key}~${attempt}`;
}

function checkAgain({ key, again = 0 }: DelegateOptions): void {
  if (!Number.isInteger(again) || again < 0 || again > AGAIN_MAX)
    throw new HarmovelaError("invalid_argument", `again must be a whole number up to ${AGAIN_MAX}`);
  if (key !== undefined && again > 0 && !isId(keyOf(key, again + 1)))
    throw new HarmovelaError("invalid_argument", "the key is too long to be told apart again");
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
