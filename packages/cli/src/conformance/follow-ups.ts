/** What follows at once from a legal line, tried entry by entry: the checker says what there is to do. */
import { closure, type Envelope, isKnownProfile, sessionIdOf } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { FixtureLog } from "./fixture-log.ts";

interface Task {
  id: string;
  parent: string | undefined;
}

const MAKES_TASKS: ReadonlySet<string> = new Set(["task.submitted", "delegation.requested"]);

/** The task that an envelope makes, when it names it. */
export function taskOf(envelope: Envelope): Task | undefined {
  const id = named(envelope, "task_id");
  if (id === undefined || !MAKES_TASKS.has(envelope.type)) return undefined;
  return { id, parent: named(envelope, "parent_task_id") };
}

/** The ends that a cancel brings to the tasks below it. */
export class Endings {
  /** Those that came last come first: children before their parents. */
  readonly #tasks: Task[] = [];
  /** What the end of a task names as its cause, by task. */
  readonly #causes = new Map<string, string>();

  /** Ids of the tasks; children come before their parents. */
  get taskIds(): string[] {
    return this.#tasks.map(({ id }) => id);
  }

  learn(envelope: Envelope): void {
    const task = taskOf(envelope);
    if (task !== undefined) this.#tasks.unshift(task);
  }

  /** A plan has begun: everything live below its root is cancelled, leaves first (spec 5.5). */
  cancelSubtree(log: FixtureLog, end: Envelope): void {
    this.#cancelEach(log, end, "parent task cancelled", ({ parent }) => parent);
  }

  /** A cancel is asked for: what nobody runs ends at once (spec 5.4). */
  cancelAsAsked(log: FixtureLog, asked: Envelope): void {
    const root = named(asked, "task_id");
    const causeOf = ({ id, parent }: Task) => (id === root ? id : parent);
    this.#cancelEach(log, asked, "cancel requested", causeOf);
  }

  /** Its producer says what the cascade has said before: a duplicate (spec 5.5). */
  isRepeated(envelope: Envelope): boolean {
    const { type, causation_id: cause } = envelope;
    if (type !== "task.cancelled" || cause === undefined) return false;
    return this.#causes.get(named(envelope, "task_id") ?? "") === cause;
  }

  /** Tries each until nothing more can end; who stands below the root names the event as its cause. */
  #cancelEach(
    log: FixtureLog,
    event: Envelope,
    reason: string,
    causeOf: (task: Task) => string | undefined,
  ): void {
    const root = named(event, "task_id");
    const end = (task: Task): boolean => {
      const { id } = task;
      const of = causeOf(task);
      const causation_id = of === undefined || of === root ? event.id : log.idOf(event.id, of);
      const payload = { task_id: id, reason };
      const links = { task_id: id, causation_id, correlation_id: event.id };
      const broken = log.owe(event.id, id, { type: "task.cancelled", ...links, payload });
      if (broken.length === 0) this.#causes.set(id, causation_id);
      return broken.length === 0;
    };
    while (this.#tasks.map(end).includes(true));
  }
}

/** The opening of a session is answered: with what can be had of the profiles asked for (spec 4.3). */
export function openSession(log: FixtureLog, opening: Envelope): void {
  const session_id = sessionIdOf(opening);
  if (session_id === undefined) return;
  const asked = objectIn(opening.payload, "capabilities");
  const required = textsIn(asked, "required_profiles");
  const wanted = [...textsIn(asked, "profiles"), ...required];
  const profiles = closure(wanted.filter(isKnownProfile));
  const isWhole = required.every((profile) => profiles.includes(profile));
  const error = { code: "unsupported_profile", message: "not available", retryable: false };
  const own = { protocol: "harmovela", spec_version: "0.2", transports: ["nats"] };
  const payload: JsonObject = isWhole
    ? { session_id, capabilities: { ...own, profiles } }
    : { session_id, error };
  const type = isWhole ? "session.ready" : "session.error";
  log.owe(opening.id, "answer", { type, session_id, payload });
}

/** In the envelope, else in the payload (spec 5.5). */
function named(envelope: Envelope, field: "task_id" | "parent_task_id"): string | undefined {
  const own = envelope[field];
  if (own !== undefined) return own;
  const { payload } = envelope;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return undefined;
  const text = Object.hasOwn(payload, field) ? payload[field] : undefined;
  return typeof text === "string" && text !== "" ? text : undefined;
}

function objectIn(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return {};
  const held = (value as Record<string, unknown>)[field];
  return typeof held === "object" && held !== null ? (held as Record<string, unknown>) : {};
}

/** A text in an object. */
export function textIn(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return undefined;
  const held = (value as Record<string, unknown>)[field];
  return typeof held === "string" ? held : undefined;
}

function textsIn(value: Record<string, unknown>, field: string): string[] {
  const list = value[field];
  return Array.isArray(list) ? list.filter((item) => typeof item === "string") : [];
}
