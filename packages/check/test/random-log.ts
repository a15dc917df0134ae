/**
 * Random logs that keep every rule: a small world of task trees in which agents work and plans go
 * on step by step, interleaved. What may happen next is chosen by the numbers given.
 */
import { type Draft, LogBuilder } from "./log-builder.ts";

interface Node {
  id: string;
  tenant: string;
  parent: Node | undefined;
  children: Node[];
  state: string;
  plan?: Draft;
  /** The cancel request that it is the root of, and when its grace ends. */
  gentle?: { request: Draft; due: number };
  isAsked?: boolean;
  due?: number;
  endId?: string;
}

const isLive = (node: Node): boolean => node.state !== "ended";
const isLeaf = (node: Node): boolean => !node.children.some(isLive);

function coveredBy(node: Node | undefined): Node | undefined {
  for (let at = node; at !== undefined; at = at.parent) if (at.plan !== undefined) return at;
  return undefined;
}

/** The nearest cancel request at or above. */
function askedBy(node: Node | undefined): Node | undefined {
  for (let at = node; at !== undefined; at = at.parent) if (at.gentle !== undefined) return at;
  return undefined;
}

/** Whether a cancel request at, above or below it has begun to force tasks: its outcome is fixed. */
function isForcing(node: Node): boolean {
  if (node.endId !== undefined || node.children.some(isForcing)) return true;
  for (let at = node.parent; at !== undefined; at = at.parent) {
    if (at.endId !== undefined) return true;
  }
  return false;
}

const isOwned = (node: Node): boolean => node.state !== "submitted";

const WORK: Record<string, string[]> = {
  submitted: ["accepted", "started"],
  accepted: ["started"],
  started: ["progress", "output", "blocked"],
  progress: ["progress", "output", "blocked"],
  output: ["progress", "output", "blocked"],
  blocked: ["started", "progress"],
};

export class RandomLog {
  readonly log = new LogBuilder();
  readonly #nodes: Node[] = [];

  /** One thing happens: `choice` says what, `pick` to which task. */
  act(choice: number, pick: number): void {
    const { log } = this;
    log.wait(pick % 7);
    const live = this.#nodes.filter(isLive);
    const node = live[pick % Math.max(1, live.length)];
    const kind = choice % 16;
    if (node === undefined || kind < 3) this.#submit(pick, kind === 0 ? undefined : node);
    else if (kind < 6) this.#work(node, choice >> 4);
    else if (kind === 6) this.#end(node);
    else if (kind === 7) this.#cancel(node);
    else if (kind < 10) this.#step(pick);
    else if (kind < 12) this.#cancelGently(node, pick);
    else if (kind < 14) this.#gentleStep(pick);
    else if (kind === 14) this.#timeOut(node);
    else this.#aside(pick);
  }

  /** Every plan goes on to its end. */
  settle(): void {
    for (let left = 10_000; left > 0; left -= 1) {
      if (this.#nodes.some((node) => node.plan !== undefined)) this.#step(0);
      else if (this.#nodes.some((node) => node.gentle !== undefined)) {
        this.log.wait(1_000);
        this.#gentleStep(0);
      } else return;
    }
    throw new Error("a plan does not end");
  }

  #submit(pick: number, parent: Node | undefined): void {
    const { log } = this;
    const isOpen = coveredBy(parent) === undefined && askedBy(parent) === undefined;
    const under = isOpen ? parent : undefined;
    log.tenant = under?.tenant ?? (pick % 2 === 0 ? "acme" : "other");
    const id = `task_${this.#nodes.length}`;
    const node: Node = {
      id,
      tenant: log.tenant,
      parent: under,
      children: [],
      state: "submitted",
    };
    if (pick % 3 === 0) node.due = log.at + (pick % 100);
    const payload = { timeout_ms: pick % 3 === 0 ? pick % 100 : undefined };
    log.submit(id, under === undefined ? { payload } : { parent: under.id, payload });
    under?.children.push(node);
    this.#nodes.push(node);
  }

  #work(node: Node, choice: number): void {
    if (coveredBy(node) !== undefined) return;
    const names = WORK[node.state] ?? [];
    const name = names[choice % names.length];
    if (name === undefined) return;
    this.log.tenant = node.tenant;
    this.log.task(name, node.id);
    node.state = name;
  }

  /** A leaf ends by itself, also in a closed subtree. */
  #end(node: Node): void {
    if (node.plan !== undefined || node.endId !== undefined || !isLeaf(node)) return;
    this.log.tenant = node.tenant;
    const canComplete = ["started", "progress", "output"].includes(node.state);
    if (canComplete) this.log.task("completed", node.id);
    else this.log.task("cancelled", node.id, "agent:boss");
    this.#ended(node);
  }

  #ended(node: Node): void {
    node.state = "ended";
    delete node.plan;
    delete node.gentle;
  }

  #cancelGently(node: Node, pick: number): void {
    if (coveredBy(node) !== undefined || askedBy(node) !== undefined) return;
    const { log } = this;
    log.tenant = node.tenant;
    const grace = pick % 40;
    const payload = { task_id: node.id, grace_period_ms: grace };
    const request = log.task("cancel.requested", node.id, "agent:boss", { payload });
    node.gentle = { request, due: log.at + grace };
    node.isAsked = true;
  }

  /** Ask the next running task, root first; else cancel a leaf that may be cancelled now. */
  #gentleStep(pick: number): void {
    const { log } = this;
    const roots = this.#nodes.filter(
      (node) => node.gentle !== undefined && coveredBy(node) === undefined,
    );
    const root = roots[pick % Math.max(1, roots.length)];
    if (root?.gentle === undefined) return;
    const { request, due } = root.gentle;
    log.tenant = root.tenant;
    const below = descendants(root).filter(isLive);
    if (below.some((node) => coveredBy(node) !== undefined)) return;
    const toAsk = below.find((node) => isOwned(node) && node.isAsked !== true);
    const leaf = [...below, root].find((node) => isLeaf(node) && (log.at >= due || !isOwned(node)));
    if (toAsk !== undefined) {
      log.ask(request, toAsk.id);
      toAsk.isAsked = true;
    } else if (leaf !== undefined) {
      const isForced = log.at >= due;
      const { parent } = leaf;
      const isBelow = leaf !== root && parent !== undefined;
      if (isForced && isBelow) parent.endId ??= log.derivedId();
      const cause = isForced && isBelow ? parent.endId : request.id;
      const id = leaf.endId ?? log.derivedId();
      log.gentleStep(request, leaf.id, isForced, { id, ...(cause ? { cause } : {}) });
      this.#ended(leaf);
    }
  }

  #timeOut(node: Node): void {
    const { log } = this;
    if (node.due === undefined || log.at < node.due) return;
    if (coveredBy(node) !== undefined || isForcing(node)) return;
    log.tenant = node.tenant;
    const envelope = log.timeOut(node.id);
    if (isLeaf(node)) {
      this.#ended(node);
      return;
    }
    log.items.pop();
    node.plan = log.begin(envelope, `owed:deadline:${node.id}`);
  }

  #cancel(node: Node): void {
    if (isLeaf(node) || coveredBy(node) !== undefined || isForcing(node)) return;
    this.log.tenant = node.tenant;
    node.plan = this.log.beginCancel(node.id);
  }

  /** The next step of one of the plans under way. */
  #step(pick: number): void {
    const { log } = this;
    const roots = this.#nodes.filter((node) => node.plan !== undefined);
    const root = roots[pick % Math.max(1, roots.length)];
    if (root?.plan === undefined) return;
    let at = root;
    for (;;) {
      const next = at.children.find(isLive);
      if (next === undefined) break;
      at = next;
      if (at.plan !== undefined) break;
    }
    log.tenant = root.tenant;
    if (at === root) {
      log.finish(root.plan);
      this.#ended(root);
    } else if (at.plan === undefined) {
      const { parent } = at;
      if (parent !== undefined && parent !== root) parent.endId ??= log.derivedId();
      const parentEnd = parent === root ? root.plan.id : (parent?.endId ?? "");
      const id = at.endId ?? log.derivedId();
      log.step(root.plan, at.id, parentEnd, { id });
      this.#ended(at);
    } else this.#step(roots.indexOf(at));
  }

  #aside(pick: number): void {
    const { log } = this;
    if (pick % 4 === 0) log.epoch();
    else if (pick % 4 === 1) log.foreign();
    else if (pick % 4 === 2) log.refuse(`evt_refused_${log.last}`);
    else log.control("position", { intake: log.intake });
  }
}

/** Parents before their children. */
function descendants(root: Node): Node[] {
  return root.children.flatMap((child) => [child, ...descendants(child)]);
}

/** A whole random log, settled. */
export function randomLog(choices: ReadonlyArray<readonly [number, number]>): LogBuilder {
  const world = new RandomLog();
  for (const [choice, pick] of choices) world.act(choice, pick);
  world.settle();
  return world.log;
}
