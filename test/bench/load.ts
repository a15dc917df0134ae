/** Envelopes as agents send them, about 600 bytes each, and a way to put many of them into an intake fast. */
import { intakeSubject, type JetStreamBus } from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";

export const TENANT = "bench";
const encoder = new TextEncoder();
/** Published without waiting; then the server is asked whether it has them. */
const CHUNK = 500;

let count = 0;
export function taskEvent(
  type: string,
  task: string,
  source: string,
  payload: Record<string, string | number> = {},
  more: Partial<Envelope> = {},
): Envelope {
  count += 1;
  return {
    spec_version: "0.2",
    id: `evt_01JBENCH${String(count).padStart(18, "0")}`,
    type,
    source,
    topic: `tasks.${task}`,
    session_id: "sess_01JBENCH000000000000000001",
    conversation_id: "conv_01JBENCH000000000000000001",
    task_id: task,
    created_at: "2026-11-30T10:00:00.000Z",
    delivery_hint: "x".repeat(60),
    payload: { task_id: task, message: "m".repeat(160), ...payload },
    ...more,
  };
}

/** A claim on `memory:<fact>`. */
export function claimEvent(fact: string, source: string, more: Partial<Envelope> = {}): Envelope {
  const { task_id: _, ...envelope } = taskEvent("memory.fact.added", fact, source);
  return { ...envelope, payload: { fact_id: fact, value: "m".repeat(160) }, ...more };
}

/** Stores the envelopes in the intake of `domain`, in order. */
export async function preload(
  bus: JetStreamBus,
  envelopes: readonly Envelope[],
  domain: Domain = "tasks",
  tenant = TENANT,
): Promise<void> {
  const stream = `HV_IN_${domain.toUpperCase()}`;
  const before = (await bus.streamState(stream))?.lastSeq ?? 0;
  for (let at = 0; at < envelopes.length; at += CHUNK) {
    for (const envelope of envelopes.slice(at, at + CHUNK)) {
      const { source, type } = envelope;
      bus.publish(
        intakeSubject({ tenant, domain, source, type }),
        {},
        encoder.encode(JSON.stringify(envelope)),
      );
    }
    await bus.flush();
    const wanted = before + Math.min(at + CHUNK, envelopes.length) - 4 * CHUNK;
    while (((await bus.streamState(stream))?.lastSeq ?? 0) < wanted) await pause(1);
  }
  while (((await bus.streamState(stream))?.lastSeq ?? 0) < before + envelopes.length)
    await pause(1);
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** `tasks` tasks that are submitted and started, one after the other. */
export function startedTasks(prefix: string, tasks: number): Envelope[] {
  return Array.from({ length: tasks }, (_, index) => `${prefix}_${index}`).flatMap((task) => [
    taskEvent("task.submitted", task, "agent:planner", {}, { target: "agent:worker" }),
    taskEvent("task.started", task, "agent:worker"),
  ]);
}

/** Progress spread over the tasks. */
export function progress(prefix: string, tasks: number, events: number): Envelope[] {
  return Array.from({ length: events }, (_, index) =>
    taskEvent("task.progress", `${prefix}_${index % tasks}`, "agent:worker", { progress: 0.5 }),
  );
}
