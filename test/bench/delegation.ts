/** Delegated children: requested, accepted, handed off with a token, started, completed, each awaited. */
import { connectBus, rpcSubject } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { generateTokenKeys, openService, openTokenKeys } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { TENANT, taskEvent } from "./load.ts";
import { timedSender } from "./sender.ts";

const LANES = 64;
const PLANNER = "agent:planner";
const WORKER = "agent:worker";

export async function delegations(
  note: (name: string, value: number, unit?: string) => void,
  children: number,
): Promise<void> {
  await using server = await startNatsServer();
  const service = await openService(createCoordinator(), {
    servers: server.url,
    version: "0.1.0",
    logger: pino({ level: "silent" }),
    tokens: await openTokenKeys(await generateTokenKeys()),
  });
  await service.host.untilLeading();
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
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      while (next < children) {
        next += 1;
        await child(`child_${next}`);
      }
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  note(
    "delegated_children_per_s",
    children / seconds,
    `children/s, fan-out of ${children}, five verdicts and a token each`,
  );
  await service.close();
  await bus.close();
}
