/**
 * Delegated children: requested, accepted, handed off, started, completed, each awaited. Once as an agent
 * without profiles does it, and once with a signed token that is asked for, recorded and judged (spec 7).
 */
import { connectBus, rpcSubject } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { TENANT, taskEvent } from "./load.ts";
import { timedSender } from "./sender.ts";
import { startServiceProcess } from "./service-process.ts";

const PLANNER = "agent:planner";
const WORKER = "agent:worker";
const WARM_ROUNDS = 8;
const MEASURED_ROUNDS = 5;

export async function delegations(
  note: (name: string, value: number, unit?: string) => void,
  children: number,
): Promise<void> {
  await using server = await startNatsServer();
  await using _service = await startServiceProcess(server.url, "tasks");
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const sender = timedSender(bus);
  await sender.send(taskEvent("task.submitted", "root", PLANNER));
  await sender.send(taskEvent("task.started", "root", PLANNER));
  const token = async (task_id: string): Promise<string> => {
    const subject = rpcSubject({ tenant: TENANT, source: PLANNER, domain: "tasks", verb: "token" });
    const question = new TextEncoder().encode(JSON.stringify({ task_id }));
    const answer = await bus.request(subject, {}, question, 10_000);
    const { result, error } = JSON.parse(Buffer.from(answer.data).toString());
    if (error !== undefined) throw new Error(error.message);
    return result.token;
  };
  const parties = { delegated_by: PLANNER, delegated_to: WORKER, parent_task_id: "root" };
  const child = async (task: string, isProved: boolean): Promise<void> => {
    const event = (type: string, source: string, more = {}) =>
      sender.send(taskEvent(type, task, source, {}, more));
    await event("delegation.requested", PLANNER, { ...parties, target: WORKER });
    await event("delegation.accepted", WORKER, parties);
    const proof = isProved ? { handoff_token: await token(task) } : {};
    await event("delegation.handoff.completed", PLANNER, { ...parties, ...proof });
    await event("task.started", WORKER);
    await event("task.completed", WORKER);
  };
  let round = 0;
  const fanOut = async (isProved: boolean): Promise<number> => {
    round += 1;
    const started = performance.now();
    const tasks = Array.from({ length: children }, (_, n) => child(`${round}_${n}`, isProved));
    await Promise.all(tasks);
    return (performance.now() - started) / 1_000;
  };
  const median = async (isProved: boolean): Promise<number> => {
    const seconds: number[] = [];
    for (let count = 0; count < MEASURED_ROUNDS; count += 1) seconds.push(await fanOut(isProved));
    return seconds.toSorted((a, b) => a - b)[MEASURED_ROUNDS >> 1] ?? Number.NaN;
  };
  // A young process runs code that is not compiled yet, at half its later speed.
  for (let count = 0; count < WARM_ROUNDS; count += 1) await fanOut(count % 2 === 0);
  const kind = `children/s, fan-out of ${children}, five verdicts each, awaited one by one`;
  note("delegated_children_per_s", children / (await median(false)), kind);
  note(
    "delegated_children_proved_per_s",
    children / (await median(true)),
    `${kind}, and a signed token`,
  );
  await bus.close();
}
