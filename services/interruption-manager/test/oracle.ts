/** A naive reading of both logs, entry by entry: what each may say, and what must have followed. */
import assert from "node:assert/strict";
import type { DomainEntry, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type Folded, payloadOf, SERVICE } from "./support.ts";

const RANK: Readonly<Record<string, number>> = {
  drain_then_stop: 0,
  save_and_stop: 1,
  force_stop: 2,
};
const TERMINAL = ["task.completed", "task.failed", "task.cancelled", "task.timed_out"];

interface Open {
  id: string;
  policy: string;
  state: string;
  due: number;
}

interface Known {
  isLive: boolean;
  endedBy: string;
  open: Open | undefined;
  checkpoints: Map<string, string>;
}

export interface Totals {
  expired: number;
  saved: number;
  resumed: number;
  closed: number;
  trees: number;
  resumedWithRoot: number;
}

export class Oracle {
  readonly tasks = new Map<string, Known>();
  readonly totals: Totals = {
    expired: 0,
    saved: 0,
    resumed: 0,
    closed: 0,
    trees: 0,
    resumedWithRoot: 0,
  };
  /** Entries that owe an end: at most one request of each may come true. */
  readonly causes = new Set<string>();
  readonly #begun = new Set<string>();
  /** Tasks whose request for the subtree is under way: nothing is open there. */
  readonly #plans = new Map<string, string>();

  read(journal: readonly Folded[]): this {
    for (const { log, entry } of journal) {
      if (log === "tasks") this.#task(entry);
      else if (entry.kind === "begun") this.#begin(entry.plan.envelope);
      else if (entry.kind === "event") this.#event(entry);
    }
    return this;
  }

  #task(entry: DomainEntry): void {
    if (entry.kind !== "event") return;
    const { type, task_id: id = "", id: event, source, causation_id: cause } = entry.envelope;
    if (type === "task.submitted" && !this.tasks.has(id)) {
      this.tasks.set(id, { isLive: true, endedBy: "", open: undefined, checkpoints: new Map() });
    }
    const known = this.tasks.get(id);
    if (source === SERVICE && type !== "task.submitted") {
      assert.ok(this.causes.delete(cause ?? ""), `${type} because of ${cause}, once`);
    }
    if (!known || !TERMINAL.includes(type)) return;
    known.isLive = false;
    known.endedBy = event;
  }

  #begin({ id, task_id: task = "" }: Envelope): void {
    this.#begun.add(id);
    this.#plans.set(task, id);
    const known = this.tasks.get(task);
    assert.ok(known?.isLive, "a subtree that lives");
    known.open = undefined;
    this.totals.trees += 1;
  }

  #event(entry: Extract<DomainEntry, { kind: "event" }>): void {
    const { envelope, at, cause } = entry;
    const { type, task_id: id = "", source, checkpoint_id: checkpoint = "" } = envelope;
    if (type === "event.rejected") {
      const { code } = payloadOf(envelope).error as JsonObject;
      if (code === "checkpoint_missing") this.causes.add(envelope.id);
      return;
    }
    if (type.startsWith("compensation.")) {
      if (type === "compensation.completed") this.causes.add(envelope.id);
      return;
    }
    const known = this.tasks.get(id);
    assert.ok(known, `${type} of an unknown task`);
    const { open } = known;
    const isOwed = "owed" in cause;
    switch (type) {
      case "interruption.requested":
        this.#requested(known, envelope, at, isOwed);
        return;
      case "interruption.acknowledged":
        assert.ok(known.isLive && open?.state === "requested");
        open.state = "acknowledged";
        return;
      case "interruption.saved": {
        const isForced = open?.policy === "force_stop" && open.state === "requested";
        assert.ok(known.isLive && open && (open.state === "acknowledged" || isForced));
        assert.ok(isForced || open.policy === "force_stop" || at < open.due, "in time");
        open.state = "saved";
        open.due = Number.POSITIVE_INFINITY;
        known.checkpoints.set(checkpoint, JSON.stringify(envelope.payload));
        this.totals.saved += 1;
        return;
      }
      case "interruption.resumed":
        assert.ok(known.isLive && open && (open.state === "saved" || open.policy === "force_stop"));
        assert.ok(known.checkpoints.has(checkpoint), "from what was saved of this task");
        known.open = undefined;
        this.totals.resumed += 1;
        if (isOwed) this.totals.resumedWithRoot += 1;
        return;
      case "interruption.cancelled":
        assert.ok(open, "something is open");
        if (isOwed) {
          assert.ok(!known.isLive && source === SERVICE);
          assert.equal(envelope.causation_id, known.endedBy);
          assert.equal(envelope.correlation_id, open.id);
          this.totals.closed += 1;
        } else {
          assert.ok(known.isLive && (open.state !== "requested" || open.policy === "force_stop"));
          this.causes.add(envelope.id);
        }
        known.open = undefined;
    }
  }

  #requested(known: Known, envelope: Envelope, at: number, isOwed: boolean): void {
    const {
      id,
      task_id: task = "",
      interruption_policy: policy = "",
      causation_id: cause,
    } = envelope;
    const payload = payloadOf(envelope);
    const isRoot = this.#begun.delete(id);
    if (isRoot) this.#plans.delete(task);
    assert.ok(known.isLive || isRoot, "of a task that lives");
    assert.ok(!this.#plans.has(task), "not while its subtree is asked");
    const { open } = known;
    if (payload.expired === true) {
      assert.ok(isOwed && open, "the one whose grace has passed");
      assert.equal(cause, open.id);
      assert.ok(open.state !== "saved" && open.policy !== "force_stop");
      assert.equal(at >= open.due, true, "not before its time");
      this.causes.add(id);
      this.totals.expired += 1;
    } else if (open) {
      assert.ok(open.state !== "saved" && (RANK[policy] ?? -1) > (RANK[open.policy] ?? 9));
    }
    const grace =
      policy === "force_stop" ? Number.POSITIVE_INFINITY : Number(payload.grace_period_ms);
    known.open = { id, policy, state: "requested", due: at + grace };
  }

  /** Everything is settled at `now`: nothing is overdue, and nothing is open that has ended. */
  atRest(now: number): void {
    for (const [id, { open, isLive }] of this.tasks) {
      if (open === undefined) continue;
      assert.ok(isLive, `${id} has ended and is still interrupted`);
      assert.ok(open.due > now, `the grace of ${id} has passed and nothing followed`);
    }
    assert.equal(this.#begun.size, 0, "every subtree was asked");
  }
}
