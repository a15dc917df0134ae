/** Random histories of agents with several sessions that are closed and lost: who works, and what fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DomainEntry, Envelope, EventEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import { del } from "./delegation-support.ts";
import { ofSession, opened } from "./family-support.ts";
import { ev, SERVICE, type World, world } from "./support.ts";

const RUNS = 300;
const AGENTS = ["agent:a", "agent:b"];
const task = fc.constantFrom("t0", "t1", "t2", "t3", "t4", "__proto__");
const agent = fc.constantFrom(...AGENTS);
/** Each agent has two; an agent may name the other's as well, or one that nobody opens. */
const named = fc.constantFrom("agent:a 1", "agent:a 2", "agent:b 1", "agent:b 2", "none", "");
/** "held": the one that has the task, else one of the agent's own. */
const session = fc.oneof(
  { weight: 2, arbitrary: fc.constant("held") },
  { weight: 1, arbitrary: named },
);
const work = fc.constantFrom("started", "started", "progress", "progress", "accepted", "completed");
const cancel = fc.constantFrom("cancelled", "cancel.requested");
const answer = fc.constantFrom("accepted", "rejected", "handoff.completed", "escalated");

const move = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("submit" as const), task, parent: task, by: agent }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant("work" as const),
      task,
      verb: work,
      session,
      by: agent,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), task, verb: cancel }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("offer" as const), task, by: agent }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("answer" as const), task, verb: answer, session }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("lose" as const), session: named }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("close" as const), session: named }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("step" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const) }) },
);
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

const initiatorOf = (id: string): string => id.split(" ")[0] ?? "";

/** In the session that a move names. */
function said(envelope: Envelope, id: string, held: string | undefined): Envelope {
  const { session_id, ...rest } = envelope;
  if (id === "") return rest;
  return { ...rest, session_id: id === "held" ? (held ?? `${envelope.source} 1`) : id };
}

function envelopeOf(scenario: World, now: Move): Envelope | undefined {
  const found = scenario.state.tenants.get(scenario.tenant);
  const record = "task" in now ? found?.tasks.get(now.task) : undefined;
  const owner = record?.owner ?? record?.submitter ?? "agent:a";
  switch (now.do) {
    case "submit":
      return ev("submitted", now.task, {
        by: now.by,
        ...(found?.tasks.has(now.parent) ? { parent: now.parent } : {}),
      });
    case "work":
      return said(
        ev(now.verb, now.task, { by: record?.owner ?? now.by }),
        now.session,
        record?.instance?.session,
      );
    case "cancel":
      return ev(now.verb, now.task, { by: owner, payload: { grace_period_ms: 10 } });
    case "offer":
      return del("requested", { task: now.task, parent: undefined, from: owner, to: now.by });
    case "answer": {
      const delegation = found?.delegations.byTask.get(now.task);
      if (delegation === undefined) return undefined;
      const { delegatedBy: from, delegatedTo: to = "agent:b" } = delegation;
      const isEscalation = now.verb === "escalated";
      const envelope = del(now.verb, {
        task: now.task,
        parent: undefined,
        from,
        to: isEscalation ? (AGENTS.find((one) => one !== to && one !== from) ?? "agent:c") : to,
        by: now.verb === "handoff.completed" || isEscalation ? from : to,
      });
      return said(envelope, now.session, delegation.instance?.session);
    }
    case "lose":
      return endOf("error", now.session, {
        error: { code: "session_timeout", message: "silent", retryable: true },
      });
    case "close":
      return endOf("closed", now.session);
    default:
      return undefined;
  }
}

function endOf(name: string, id: string, payload: JsonObject = {}): Envelope | undefined {
  if (!id.includes(" ")) return undefined;
  return ofSession(name, id, payload, { source: initiatorOf(id) });
}

/** Who has what, told apart from the product by the log alone. */
class Model {
  readonly #ended = new Map<string, "closed" | "lost">();
  readonly #acceptedIn = new Map<string, string | undefined>();
  /** Nobody had it before the offer was accepted: it goes back with a rejection. */
  readonly #onlyAccepted = new Set<string>();
  readonly holders = new Map<string, { owner: string; session: string | undefined }>();
  readonly #terminal = new Set<string>();
  readonly excused = new Set<string>();
  bound = 0;
  orphans = 0;

  isLost(id: string | undefined): boolean {
    return id !== undefined && this.#ended.get(id) === "lost";
  }

  entry(entry: DomainEntry): void {
    if (entry.kind !== "event" || entry.envelope.type.endsWith("event.rejected")) return;
    const { type, task_id: id = "" } = entry.envelope;
    if (type === "session.closed") this.#ended.set(entry.envelope.session_id ?? "", "closed");
    else if (type === "session.error") this.#ended.set(entry.envelope.session_id ?? "", "lost");
    else if (type.startsWith("delegation.")) this.#delegation(entry, id);
    else if (type.startsWith("task.")) this.#task(entry, id, type.slice("task.".length));
  }

  /** The session of an event when it is the sender's own and live. */
  #own({ session_id: id, source }: Envelope): string | undefined {
    const isOwn = id?.includes(" ") === true && initiatorOf(id) === source;
    return isOwn && AGENTS.includes(source) && !this.#ended.has(id) ? id : undefined;
  }

  #delegation({ envelope }: EventEntry, id: string): void {
    const holder = this.holders.get(id);
    const { delegated_to: to = "" } = envelope;
    if (envelope.type === "delegation.accepted") {
      this.#acceptedIn.set(id, this.#own(envelope));
      if (holder) return;
      this.#onlyAccepted.add(id);
      this.holders.set(id, { owner: to, session: this.#own(envelope) });
    } else if (envelope.type === "delegation.handoff.completed") {
      this.holders.set(id, { owner: to, session: this.#acceptedIn.get(id) });
      this.#onlyAccepted.delete(id);
    } else if (envelope.type === "delegation.rejected") {
      this.#heldHere(envelope, this.#acceptedIn.get(id));
      this.#acceptedIn.delete(id);
      if (this.#onlyAccepted.delete(id)) this.holders.delete(id);
    } else {
      // A new offer: who had the task has it until the handoff.
      this.#acceptedIn.delete(id);
      this.#onlyAccepted.delete(id);
    }
  }

  #task({ envelope }: EventEntry, id: string, verb: string): void {
    const holder = this.holders.get(id);
    if (envelope.source !== SERVICE && !verb.startsWith("cancel") && verb !== "submitted") {
      if (holder) this.#heldHere(envelope, holder.session);
      else this.holders.set(id, { owner: envelope.source, session: this.#own(envelope) });
    }
    if (!["completed", "failed", "cancelled"].includes(verb)) return;
    assert.ok(!this.#terminal.has(id), `${id} ends twice`);
    this.#terminal.add(id);
    if (envelope.source !== SERVICE || verb !== "failed") return;
    assert.ok(this.isLost(holder?.session), `${id} fails, and nobody was lost`);
    this.orphans += 1;
  }

  #heldHere({ type, session_id }: Envelope, held: string | undefined): void {
    if (held === undefined || this.#ended.has(held)) return;
    assert.equal(session_id, held, `${type} in another session`);
    this.bound += 1;
  }
}

/** `isSettled`: what is owed at the end is worked off. */
function run(moves: readonly Move[], isSettled: boolean): { scenario: World; model: Model } {
  const scenario = world();
  for (const by of AGENTS)
    for (const n of [1, 2]) scenario.given(opened(`${by} ${n}`, {}, { source: by })).settle();
  const model = new Model();
  let read = 0;
  for (const now of moves) {
    const envelope = envelopeOf(scenario, now);
    const owed = now.do === "fail" ? scenario.owed() : undefined;
    if (envelope) scenario.judge(envelope);
    else if (now.do === "step") scenario.step();
    else if (owed && "event" in owed && owed.event.type === "task.failed") {
      scenario.fail(owed.event.id);
      model.excused.add(owed.event.task_id ?? "");
    }
    for (const entry of scenario.log.slice(read)) model.entry(entry);
    read = scenario.log.length;
  }
  if (isSettled) for (const entry of scenario.settle(scenario.now + 1000)) model.entry(entry);
  return { scenario, model };
}

const history = fc.array(move, { minLength: 20, maxLength: 120, size: "max" });

test("what is taken in a session is worked on there; what a lost one had fails, once", () => {
  const reached = { bound: 0, orphans: 0 };
  fc.assert(
    fc.property(history, (moves) => {
      const { scenario, model } = run(moves, true);
      for (const one of scenario.state.tenants.get(scenario.tenant)?.tasks.values() ?? []) {
        if (one.parent?.ended) assert.ok(one.ended, `${one.parent.id} ended over live ${one.id}`);
        if (one.ended || one.owner === undefined || model.excused.has(one.id)) continue;
        assert.ok(!model.isLost(one.instance?.session), `${one.id} outlives its worker`);
      }
      reached.bound += model.bound;
      reached.orphans += model.orphans;
    }),
    { numRuns: RUNS },
  );
  for (const [name, count] of Object.entries(reached)) {
    assert.ok(count > RUNS / 10, `only ${count} ${name}`);
  }
});

test("a fresh fold of the log gives the same state, and owes the same", () => {
  fc.assert(
    fc.property(history, (moves) => {
      const { scenario } = run(moves, false);
      const again = scenario.refold();
      assert.deepEqual(describeState(again), describeState(scenario.state));
      const underWay = { requests: new Set<string>() };
      const owed = (state: typeof again) => scenario.decider.owed(state, scenario.now, underWay);
      assert.deepEqual(owed(again), owed(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(history, (moves) => {
      assertTenantsApart(run(moves, true).scenario, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
