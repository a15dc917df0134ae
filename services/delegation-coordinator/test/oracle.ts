import assert from "node:assert/strict";
import type { DomainEntry } from "@harmovela/envelope";
import { parentIdOf, taskIdOf } from "../src/rules/identity.ts";
import { MANAGER } from "./interruption-support.ts";
import { SERVICE } from "./support.ts";

const TERMINAL = new Set(["task.completed", "task.failed", "task.cancelled", "task.timed_out"]);

/** The rules of the log, told apart from the product: every prefix must keep them. */
export class Oracle {
  readonly #parents = new Map<string, string | undefined>();
  readonly #ended = new Set<string>();
  readonly #submissions = new Set<string>();
  readonly #closed = new Map<string, string>();
  readonly cited = new Set<string>();
  readonly ids = new Set<string>();
  #read = 0;

  read(log: readonly DomainEntry[]): void {
    for (const entry of log.slice(this.#read)) this.#entry(entry);
    this.#read = log.length;
  }

  #ancestors(task: string): string[] {
    const found: string[] = [];
    for (let at: string | undefined = task; at !== undefined; at = this.#parents.get(at))
      found.push(at);
    return found;
  }

  #entry(entry: DomainEntry): void {
    if (entry.kind === "obligation_failed") {
      for (const [root, plan] of this.#closed) if (plan === entry.id) this.#closed.delete(root);
      return;
    }
    if (entry.kind === "begun") {
      const root = taskIdOf(entry.plan.envelope) ?? "";
      assert.ok(!this.#ended.has(root), "a plan for an ended task");
      assert.ok(
        !this.#ancestors(root).some((at) => this.#closed.has(at)),
        "a plan in a closed subtree",
      );
      this.#closed.set(root, entry.plan.id);
      return;
    }
    if (entry.kind !== "event") return;
    const { envelope } = entry;
    if (envelope.type === "event.rejected") return;
    const task = taskIdOf(envelope) ?? "";
    assert.ok(!this.ids.has(envelope.id), `id ${envelope.id} twice`);
    this.ids.add(envelope.id);
    const over = this.#ancestors(task).find((at) => this.#closed.has(at));
    if (envelope.type === "task.submitted") {
      const parent = parentIdOf(envelope);
      // One that undoes another is submitted once as its request says, and once by whoever asked.
      const by = envelope.source === MANAGER ? `${task} requested` : `${task} sent`;
      assert.ok(!this.#submissions.has(by), "an id used twice");
      const isSecond = this.#parents.has(task);
      if (isSecond) assert.equal(parent, undefined, "a second submission with a parent");
      const isAsked = envelope.source === MANAGER || this.#submissions.has(`${task} requested`);
      assert.ok(!isSecond || isAsked, "an id used twice");
      if (isSecond) assert.ok(over === undefined && !this.#ended.has(task), "submitted too late");
      this.#submissions.add(by);
      if (parent !== undefined) {
        assert.ok(
          this.#parents.has(parent) && !this.#ended.has(parent),
          "a parent that is not live",
        );
        assert.ok(
          !this.#ancestors(parent).some((at) => this.#closed.has(at)),
          "a child in a closed subtree",
        );
      }
      this.#parents.set(task, parent);
      return;
    }
    assert.ok(this.#parents.has(task) && !this.#ended.has(task), "an event of no live task");
    if (!TERMINAL.has(envelope.type)) {
      assert.ok(over === undefined, "work in a closed subtree");
      return;
    }
    if (envelope.source === SERVICE && envelope.type === "task.cancelled") {
      if (envelope.causation_id !== undefined) this.cited.add(envelope.causation_id);
    }
    if (envelope.source === SERVICE && envelope.type === "task.timed_out") {
      assert.ok(
        over === undefined || this.#closed.get(over) === envelope.id,
        "a timer in a closed subtree",
      );
    }
    for (const [child, parent] of this.#parents) {
      assert.ok(parent !== task || this.#ended.has(child), `${task} ended over live ${child}`);
    }
    this.#ended.add(task);
    this.#closed.delete(task);
  }

  openPlans(): number {
    return this.#closed.size;
  }
}
