/** Delegated children: requested, accepted, handed off with a token, started, completed, each awaited. */
import { connectBus, rpcSubject } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { TENANT, taskEvent } from "./load.ts";
import { timedSender } from "./sender.ts";
import { startServiceProcess } from "./service-process.ts";

const PLANNER = "agent:planner";
const WORKER = "agent:worker";

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
  const child = async (task: string): Promise<void> => {
    const event = (type: string, source: string, more = {}) =>
      sender.send(taskEvent(type, task, source, {}, more));
    await event("delegation.requested", PLANNER, { ...parties, target: WORKER });
    await event("delegation.accepted", WORKER, parties);
    const handoff_token = await token(task);
    await event("delegation.handoff.completed", PLANNER, { ...parties, handoff_token });
    await event("task.started", WORKER);
    await event("task.completed", WORKER);
  };
  const fanOut = async (name: string): Promise<number> => {
    const started = performance.now();
    await Promise.all(Array.from({ length: children }, (_, n) => child(`${name}_${n}`)));
    return (performance.now() - started) / 1_000;
  };
  // The first one finds the code of a young process slow.
  await fanOut("warm");
  const seconds = [await fanOut("a"), await fanOut("b"), await fanOut("c")].toSorted()[1] ?? 0;
  note(
    "delegated_children_per_s",
    children / seconds,
    `children/s, fan-out of ${children}, five verdicts and a token each, awaited one by one`,
  );
  await bus.close();
}
