/** Random histories of two logs: few names, so that they meet. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import fc from "fast-check";
import { event, type Fields, iso, NOW, opened, type World } from "./support.ts";

const TASKS = ["t0", "t1", "t2", "t3", "t4", "__proto__"];
const UNDOING = ["u0", "u1"];
const SESSIONS = ["s0", "s1"];
const CHECKPOINTS = ["c0", "c1", "c2"];
export const FAR = NOW + 1e9;

interface Answer {
  task: string;
  session: string | undefined;
  /** Which of the open ones is meant, whatever task and session say. */
  aim: number | undefined;
}

export type Move =
  | { do: "submit"; task: string; under: string | undefined }
  | { do: "take"; task: string; session: string | undefined }
  | { do: "work"; task: string; how: string }
  | { do: "end"; task: string; how: string }
  | { do: "open" | "close" | "lose"; session: string }
  | { do: "request"; task: string; policy: number; graceMs: number; isTree: boolean }
  | ({ do: "acknowledge"; cause: number | undefined } & Answer)
  | ({ do: "save"; checkpoint: string; bytes: number } & Answer)
  | ({ do: "resume"; by: string; checkpoint: string; isTree: boolean } & Answer)
  | ({ do: "cancel" } & Answer)
  | { do: "undo"; task: string; with: string; reason: string }
  | { do: "undone"; task: string; with: string }
  | { do: "coordinator"; how: "grant" | "refuse" | "later" | "begin" }
  | { do: "comply" }
  | { do: "pause" }
  | { do: "wait"; ms: number }
  | { do: "step" };

const task = fc.constantFrom(...TASKS, ...UNDOING);
const session = fc.option(fc.constantFrom(...SESSIONS), { nil: undefined });
const answer = {
  task,
  session,
  aim: fc.oneof(
    { weight: 4, arbitrary: fc.nat(5) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  ),
};
const checkpoint = fc.constantFrom(...CHECKPOINTS);

function one<T extends Move>(weight: number, shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) {
  return { weight, arbitrary: fc.record(shape) as unknown as fc.Arbitrary<Move> };
}

export const move: fc.Arbitrary<Move> = fc.oneof(
  one<Extract<Move, { do: "submit" }>>(5, {
    do: fc.constant("submit"),
    task,
    under: fc.option(fc.constantFrom(...TASKS), { nil: undefined }),
  }),
  one<Extract<Move, { do: "take" }>>(5, { do: fc.constant("take"), task, session }),
  one<Extract<Move, { do: "work" }>>(2, {
    do: fc.constant("work"),
    task,
    how: fc.constantFrom("progress", "blocked", "output"),
  }),
  one<Extract<Move, { do: "end" }>>(2, {
    do: fc.constant("end"),
    task,
    how: fc.constantFrom("completed", "failed", "cancelled", "timed_out"),
  }),
  one<Extract<Move, { do: "open" | "close" | "lose" }>>(3, {
    do: fc.constantFrom("open", "open", "close", "lose"),
    session: fc.constantFrom(...SESSIONS),
  }),
  one<Extract<Move, { do: "request" }>>(10, {
    do: fc.constant("request"),
    task,
    policy: fc.nat(2),
    graceMs: fc.constantFrom(0, 1, 50, 200, 1000),
    isTree: fc.boolean(),
  }),
  one<Extract<Move, { do: "acknowledge" }>>(9, {
    do: fc.constant("acknowledge"),
    ...answer,
    cause: fc.oneof(
      { weight: 6, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.nat(60) },
    ),
  }),
  one<Extract<Move, { do: "save" }>>(9, {
    do: fc.constant("save"),
    ...answer,
    checkpoint,
    bytes: fc.nat(1),
  }),
  one<Extract<Move, { do: "resume" }>>(7, {
    do: fc.constant("resume"),
    ...answer,
    by: fc.constantFrom("agent:s", "agent:w"),
    checkpoint,
    isTree: fc.boolean(),
  }),
  one<Extract<Move, { do: "cancel" }>>(2, { do: fc.constant("cancel"), ...answer }),
  one<Extract<Move, { do: "undo" }>>(3, {
    do: fc.constant("undo"),
    task,
    with: fc.constantFrom(...UNDOING),
    reason: fc.constantFrom("r0", "r1"),
  }),
  one<Extract<Move, { do: "undone" }>>(2, {
    do: fc.constant("undone"),
    task,
    with: fc.constantFrom(...UNDOING),
  }),
  one<Extract<Move, { do: "coordinator" }>>(5, {
    do: fc.constant("coordinator"),
    how: fc.constantFrom("grant", "grant", "refuse", "later", "begin"),
  }),
  one<Extract<Move, { do: "wait" }>>(5, {
    do: fc.constant("wait"),
    ms: fc.constantFrom(1, 7, 60, 200),
  }),
  { weight: 6, arbitrary: fc.constant({ do: "step" as const }) },
  { weight: 2, arbitrary: fc.constantFrom({ do: "comply" as const }, { do: "pause" as const }) },
);

/** Most tasks are there and taken at first. */
const prelude: fc.Arbitrary<Move[]> = fc
  .tuple(
    fc.shuffledSubarray(SESSIONS),
    fc.array(fc.tuple(fc.option(fc.constantFrom(...TASKS), { nil: undefined }), session), {
      minLength: TASKS.length,
      maxLength: TASKS.length,
    }),
  )
  .map(([sessions, rows]) => [
    ...sessions.map((one): Move => ({ do: "open", session: one })),
    ...rows.flatMap(([under, taken], index): Move[] => {
      const id = TASKS[index] ?? "";
      return [
        { do: "submit", task: id, under },
        { do: "take", task: id, session: taken },
      ];
    }),
  ]);

export const history: fc.Arbitrary<Move[]> = fc
  .tuple(prelude, fc.array(move, { minLength: 20, maxLength: 90, size: "max" }))
  .map(([first, rest]) => [...first, ...rest]);

const POLICIES = ["drain_then_stop", "save_and_stop", "force_stop"] as const;

/** An answer mostly means what is open, and comes from who has it. */
function aimed(scenario: World, now: Move): Move {
  if (!("aim" in now) || now.aim === undefined) return now;
  const open = [...(scenario.state.tenants.get(scenario.tenant)?.open.values() ?? [])];
  const meant = open[now.aim % Math.max(1, open.length)];
  if (meant === undefined) return now;
  const { id, instance } = meant.task;
  const answer = { task: id, session: instance?.endedBy ? undefined : instance?.session };
  if (now.do !== "resume" || now.aim === 0) return { ...now, ...answer };
  return { ...now, ...answer, checkpoint: meant.saved?.checkpoint ?? now.checkpoint };
}

/** What an agent says to this service. */
export function envelopeOf(scenario: World, move: Move, place: number): Envelope | undefined {
  const now = aimed(scenario, move);
  const base = (fields: Fields): Fields => ({ id: `e${place}`, ...fields });
  const scope = (isTree: boolean): JsonObject => (isTree ? { scope: "tree" } : {});
  switch (now.do) {
    case "request": {
      const fields: Fields = { source: "agent:s", task_id: now.task };
      const policy = POLICIES[now.policy];
      if (policy !== undefined) fields.interruption_policy = policy;
      const payload = { grace_period_ms: now.graceMs, ...scope(now.isTree) };
      return event("interruption.requested", payload, base(fields));
    }
    case "acknowledge": {
      const fields: Fields = { task_id: now.task };
      if (now.session !== undefined) fields.session_id = now.session;
      if (now.cause !== undefined) fields.causation_id = `e${now.cause}`;
      return event("interruption.acknowledged", {}, base(fields));
    }
    case "save": {
      const fields: Fields = { task_id: now.task, checkpoint_id: now.checkpoint };
      if (now.session !== undefined) fields.session_id = now.session;
      return event("interruption.saved", { bytes_saved: now.bytes }, base(fields));
    }
    case "resume": {
      const fields: Fields = { source: now.by, task_id: now.task, checkpoint_id: now.checkpoint };
      if (now.session !== undefined) fields.session_id = now.session;
      return event("interruption.resumed", scope(now.isTree), base(fields));
    }
    case "cancel":
      return event(
        "interruption.cancelled",
        { reason: "no" },
        base({ source: "agent:s", task_id: now.task }),
      );
    case "undo":
    case "undone": {
      const fields: Fields = { source: "agent:s", task_id: now.with, compensation_id: now.task };
      if (now.do === "undone") return event("compensation.completed", {}, base(fields));
      const payload = { reason: now.reason, description: "d" };
      return event("compensation.requested", payload, base(fields));
    }
    default:
      return undefined;
  }
}

/** The coordinator, as far as its log has to be a legal one. */
export class Coordinator {
  readonly #world: World;
  readonly #live = new Map<string, string | undefined>();
  readonly #ended = new Set<string>();
  readonly #taken = new Set<string>();
  readonly #begun: Envelope[] = [];
  /** How often each request was given. */
  readonly granted = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  apply(now: Move): void {
    switch (now.do) {
      case "submit": {
        const under = now.under !== undefined && this.#live.has(now.under) ? now.under : undefined;
        this.#submit(now.task, under);
        break;
      }
      case "take": {
        if (!this.#live.has(now.task) || this.#taken.has(now.task)) break;
        this.#taken.add(now.task);
        this.#say(
          "started",
          now.task,
          now.session === undefined ? {} : { session_id: now.session },
        );
        break;
      }
      case "work":
        if (this.#taken.has(now.task) && this.#live.has(now.task)) this.#say(now.how, now.task);
        break;
      case "end":
        this.#end(now.task, now.how);
        break;
      case "open":
        this.#world.tasks(opened(now.session));
        break;
      case "close":
        this.#world.tasks(this.#session("session.closed", now.session));
        break;
      case "lose":
        this.#world.tasks(this.#session("session.error", now.session));
        break;
      case "coordinator":
        this.#answer(now.how);
    }
  }

  #session(type: string, id: string): Envelope {
    return event(type, { session_id: id }, { session_id: id });
  }

  #submit(id: string, under: string | undefined): void {
    if (this.#live.has(id) || this.#ended.has(id)) return;
    this.#live.set(id, under);
    const fields: Fields = { source: "agent:s", task_id: id };
    if (under !== undefined) fields.parent_task_id = under;
    this.#world.tasks(event("task.submitted", {}, fields));
  }

  #say(how: string, id: string, fields: Fields = {}): void {
    this.#world.tasks(event(`task.${how}`, {}, { task_id: id, ...fields }));
  }

  /** Descendants first; `as` is the event of the task itself. */
  #end(id: string, how: string, as?: Envelope): void {
    if (!this.#live.has(id)) return;
    for (const [child, parent] of [...this.#live]) if (parent === id) this.#end(child, "cancelled");
    this.#live.delete(id);
    this.#ended.add(id);
    this.#world.tasks(as ?? event(`task.${how}`, {}, { task_id: id }));
  }

  #answer(how: "grant" | "refuse" | "later" | "begin"): void {
    const begun = this.#begun.shift();
    if (begun) this.#grant(begun);
    const [request] = this.#world.requests();
    if (request === undefined) return;
    if (how === "refuse") this.#world.refuse(request, "task_error");
    else if (how === "later") this.#world.refuse(request, "internal_error", true);
    else if (how === "begin" && request.type !== "task.submitted") {
      this.#begun.push(request);
      const plan = { id: request.id, kind: request.type, envelope: request };
      this.#world.ofTasks({ kind: "begun", plan });
    } else this.#grant(request);
  }

  #grant(request: Envelope): void {
    this.granted.set(request.id, (this.granted.get(request.id) ?? 0) + 1);
    const id = request.task_id ?? "";
    if (request.type !== "task.submitted") {
      this.#end(id, "", request);
      return;
    }
    if (this.#live.has(id) || this.#ended.has(id)) {
      this.#world.refuse(request, "task_error");
      return;
    }
    this.#live.set(id, undefined);
    this.#world.grant(request);
  }

  /** Gives everything that is asked for, until nothing is. */
  settle(): void {
    for (;;) {
      this.#world.said();
      if (this.#begun.length === 0 && this.#world.requests().length === 0) return;
      this.#answer("grant");
    }
  }
}

/** Lets a history happen; what is owed is worked off only by its steps, and in time before every message. */
export function live(scenario: World, moves: readonly Move[], onMove?: () => void): Coordinator {
  const coordinator = new Coordinator(scenario);
  for (const [place, now] of moves.entries()) {
    if (now.do === "wait") scenario.wait(now.ms);
    else if (now.do === "step") {
      scenario.owed();
      scenario.step();
    } else if (now.do === "comply") comply(scenario, place);
    else if (now.do === "pause") pause(scenario, place);
    else {
      coordinator.apply(now);
      const envelope = envelopeOf(scenario, now, place);
      if (envelope !== undefined) {
        timers(scenario);
        scenario.judge(envelope);
      }
    }
    onMove?.();
  }
  return coordinator;
}

/** Whoever is asked to stop saves, and stops. */
function comply(scenario: World, place: number): void {
  scenario.said();
  const open = scenario.state.tenants.get(scenario.tenant)?.open.values() ?? [];
  for (const [index, { task: interrupted }] of [...open].entries()) {
    const fields: Fields = { task_id: interrupted.id };
    const { instance } = interrupted;
    if (instance && !instance.endedBy) fields.session_id = instance.session;
    const id = `e${place}:${index}`;
    scenario.judge(event("interruption.acknowledged", {}, { ...fields, id: `${id}a` }));
    const checkpoint = { checkpoint_id: `${id}c` };
    scenario.judge(event("interruption.saved", {}, { ...fields, ...checkpoint, id: `${id}s` }));
  }
}

/** A subtree is stopped and told to go on; its steps are still to come. */
function pause(scenario: World, place: number): void {
  const tasks = scenario.state.tenants.get(scenario.tenant)?.tasks.values() ?? [];
  const root = [...tasks].find(({ liveCount, ended, open }) => liveCount > 0 && !ended && !open);
  if (root === undefined) return;
  const fields: Fields = { source: "agent:s", task_id: root.id };
  const payload = { scope: "tree", grace_period_ms: 1000 };
  scenario.judge(event("interruption.requested", payload, { ...fields, id: `e${place}:t` }));
  comply(scenario, place);
  const checkpoint_id = root.open?.saved?.checkpoint ?? "c0";
  const goOn = { ...fields, checkpoint_id, id: `e${place}:r` };
  scenario.judge(event("interruption.resumed", { scope: "tree" }, goOn));
}

/** What is due before a message that is stored now (architecture, section 5). */
export function timers(scenario: World): void {
  for (;;) {
    const owed = scenario.owed();
    if (owed === undefined || !("urgency" in owed) || owed.urgency !== "timer") return;
    scenario.step();
  }
}

export { iso };
