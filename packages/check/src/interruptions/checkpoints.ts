/** What was saved, and what may be resumed from it (spec 5.7). */
import { type DomainEvent, payloadField } from "../domain-event.ts";
import type { Stops } from "./book.ts";
import type { InterruptionContext } from "./context.ts";

/** Remembered for each task; the service remembers half as many. */
const CHECKPOINTS_MAX = 128;

const DIGEST = /^sha-256:[0-9a-f]{64}$/;

/** A checkpoint is registered once under its id. */
export function register(
  { sink }: InterruptionContext,
  { envelope }: DomainEvent,
  stops: Stops,
): void {
  const { checkpoint_id: id } = envelope;
  if (id === undefined) return;
  const of = (name: string): unknown => payloadField(envelope, name);
  const digest = of("digest");
  const content = [of("bytes_saved"), of("location"), digest];
  if (digest !== undefined && !(typeof digest === "string" && DIGEST.test(digest))) {
    sink.add("checkpoint-form", `checkpoint ${id} has the digest ${String(digest)}`, stops.taskId);
  }
  const known = stops.checkpoints.get(id);
  if (known?.content.some((value, index) => value !== content[index])) {
    const message = `checkpoint ${id} of ${stops.taskId} has been another one`;
    sink.add("checkpoint-changed", message, stops.taskId);
  }
  stops.checkpoints.delete(id);
  stops.checkpoints.set(id, { id, content, digest });
  if (stops.checkpoints.size <= CHECKPOINTS_MAX) return;
  for (const oldest of stops.checkpoints.keys()) {
    stops.checkpoints.delete(oldest);
    return;
  }
}

/** A resume names a checkpoint of this very task whose digest fits. */
export function checkResumed(
  context: InterruptionContext,
  { envelope }: DomainEvent,
  stops: Stops,
): void {
  const { sink, isLenient } = context;
  const { checkpoint_id: id } = envelope;
  const { taskId, checkpoints } = stops;
  const known = id === undefined ? undefined : checkpoints.get(id);
  if (known === undefined) {
    if (isLenient && id !== undefined) return;
    sink.add("checkpoint-unknown", `${taskId} is resumed from ${id ?? "nothing"}`, taskId);
    return;
  }
  const digest = payloadField(envelope, "digest");
  if (digest === undefined || digest === known.digest) return;
  sink.add("checkpoint-unknown", `${taskId} is resumed from ${id} with another digest`, taskId);
}

/** Who cancels may name a checkpoint that there is. */
export function checkNamed(
  { sink, isLenient }: InterruptionContext,
  { envelope }: DomainEvent,
  { taskId, checkpoints }: Stops,
): void {
  const id = payloadField(envelope, "checkpoint_id") ?? envelope.checkpoint_id;
  if (typeof id !== "string" || isLenient || checkpoints.has(id)) return;
  sink.add("checkpoint-unknown", `${taskId} is cancelled with the checkpoint ${id}`, taskId);
}
