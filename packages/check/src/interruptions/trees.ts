/** Interruptions of whole trees: leaves first and the root last, resumed in the opposite order (spec 5.7). */
import { type DomainEvent, payloadField } from "../domain-event.ts";
import type { OpenPlan } from "../plan-book.ts";
import { isTerminal } from "../tasks/table.ts";
import { isAtOrAbove, type Task } from "../tasks/task.ts";
import type { Interruption } from "./book.ts";
import { bookOf, type InterruptionContext, taskOf } from "./context.ts";
import { checkOpen, close, goOn, open, policyOf } from "./lifecycle.ts";

/** The live tasks of a subtree when its interruption began, each with those directly below it. */
interface Tree {
  readonly root: string;
  /** Earlier requests for trees of the root, which gave way. */
  readonly trees: readonly string[];
  /** The request for a larger tree from which the root was interrupted before. */
  readonly treeOf: string | undefined;
  readonly members: ReadonlyMap<string, readonly string[]>;
  readonly interrupted: Set<string>;
}

/** A resume of a tree: of what the requests `trees` had interrupted below `root`. */
export interface TreeResume {
  readonly trees: readonly string[];
  readonly root: string;
  readonly seq: number;
  readonly subject: string;
}

export const isOfTree = ({ envelope }: DomainEvent): boolean =>
  payloadField(envelope, "scope") === "tree";

export class TreeRules {
  readonly #context: InterruptionContext;
  /** By tenant and plan. */
  readonly #trees = new Map<OpenPlan, Tree>();
  /** By tenant and id of the resume. */
  readonly #resumes = new Map<string, TreeResume>();

  constructor(context: InterruptionContext) {
    this.#context = context;
  }

  /** From here on it is fixed whom it interrupts. */
  begin(event: DomainEvent, plan: OpenPlan, root: string): void {
    if (!isOfTree(event)) {
      this.#context.sink.add("begun-form", `${plan.id} interrupts no tree`, root);
    }
    const members = membersOf(this.#context, event, root);
    const stops = bookOf(this.#context, event.tenant).at(root, event.frame.at);
    const { trees = [], treeOf } = stops.open ?? {};
    close(stops, event.frame.at);
    this.#trees.set(plan, { root, trees, treeOf, members, interrupted: new Set() });
  }

  /** A task below the root, when those below it are interrupted, have ended, or were so before. */
  step(event: DomainEvent, plan: OpenPlan, id: string): void {
    const { sink, tasks } = this.#context;
    const { tenant, frame } = event;
    const tree = this.#trees.get(plan);
    const stops = bookOf(this.#context, tenant).at(id, frame.at);
    const isMember = tasks === undefined || tasks.isLenient || tree?.members.has(id) === true;
    if (!isMember || tree?.root === id || tree?.interrupted.has(id)) {
      sink.add("tree-member", `${plan.id} interrupts ${id}, which is not its turn`, id);
    }
    checkOpen(this.#context, event, stops);
    const rootPolicy = plan.envelope.interruption_policy ?? "save_and_stop";
    if (policyOf(event) !== rootPolicy) {
      sink.add("tree-member", `${id} is interrupted by ${policyOf(event)}, not ${rootPolicy}`, id);
    }
    if (tree !== undefined) this.#checkBelow(event, tree, id);
    tree?.interrupted.add(id);
    open(this.#context, event, stops, { treeOf: plan.id });
  }

  /** The root's own event: nothing below it is left. */
  finish(event: DomainEvent, plan: OpenPlan, id: string): void {
    const tree = this.#trees.get(plan);
    if (tree !== undefined) this.#checkBelow(event, tree, id);
    this.#trees.delete(plan);
    const stops = bookOf(this.#context, event.tenant).at(id, event.frame.at);
    const trees = [...(tree?.trees ?? []), plan.id];
    const { treeOf } = tree ?? {};
    open(this.#context, event, stops, { trees, ...(treeOf === undefined ? {} : { treeOf }) });
  }

  #checkBelow(event: DomainEvent, tree: Tree, id: string): void {
    const left = tree.members.get(id)?.find((below) => !this.#isDone(event, tree, below));
    if (left === undefined) return;
    this.#context.sink.add("tree-order", `${id} is interrupted before ${left} below it`, id);
  }

  #isDone(event: DomainEvent, tree: Tree, id: string): boolean {
    const book = bookOf(this.#context, event.tenant);
    if (tree.interrupted.has(id) || book.isExcused) return true;
    const { open, ending } = book.get(id) ?? {};
    if (open !== undefined || ending !== undefined) return true;
    const task = taskOf(this.#context, event, id);
    return task === undefined || isTerminal(task.state);
  }

  /** The root is resumed first. `trees`: the requests of which it was the root. */
  beginResume(
    { tenant, envelope, frame }: DomainEvent,
    trees: readonly string[],
    root: string,
  ): void {
    const { seq, subject } = frame;
    this.#resumes.set(keyOf(tenant, envelope.id), { trees, root, seq, subject });
  }

  /** A task below it, from its newest checkpoint, after those above it. */
  resume(event: DomainEvent, id: string): void {
    const { sink, isLenient } = this.#context;
    const { tenant, envelope, frame, owedBy = "" } = event;
    const stops = bookOf(this.#context, tenant).at(id, frame.at);
    const { open, checkpoints } = stops;
    const resume =
      this.#resumes.get(keyOf(tenant, owedBy)) ??
      this.#resumes.get(keyOf(tenant, envelope.causation_id ?? ""));
    if (isLenient && resume === undefined) {
      goOn(this.#context, event, stops);
      return;
    }
    if (open === undefined || resume === undefined || !isOf(open, resume)) {
      sink.add(
        "tree-resume",
        `${id} is resumed by itself, with no tree that it was stopped in`,
        id,
      );
    } else if (open.state !== "saved") {
      sink.add("tree-resume", `${id} is resumed, and it has saved nothing`, id);
    }
    const newest = [...checkpoints.keys()].at(-1);
    if (envelope.checkpoint_id !== newest) {
      const message = `${id} is resumed from ${envelope.checkpoint_id}, the newest is ${newest}`;
      sink.add("tree-resume", message, id);
    }
    const above = resume && this.#stoppedAbove(event, resume, id);
    if (above !== undefined) sink.add("tree-order", `${id} is resumed before ${above}`, id);
    goOn(this.#context, event, stops);
  }

  /** A task above it that is to be resumed as well, and is not yet. */
  #stoppedAbove(event: DomainEvent, resume: TreeResume, id: string): string | undefined {
    let at = taskOf(this.#context, event, id)?.parent;
    for (; at !== undefined && at.id !== resume.root; at = at.parent) {
      if (isTerminal(at.state)) continue;
      if (this.#isToResume(event.tenant, resume, at)) return at.id;
    }
    return undefined;
  }

  #isToResume(tenant: string, resume: TreeResume, { id }: Task): boolean {
    const open = bookOf(this.#context, tenant).get(id)?.open;
    if (open === undefined || !isOf(open, resume)) return false;
    return open.state === "saved" && open.savedAt < resume.seq;
  }

  /** Tasks that were to be resumed with a tree, and are still stopped. */
  *unresumed(): Generator<{ task: Task; resume: TreeResume }> {
    const { tasks } = this.#context;
    if (tasks === undefined || tasks.isLenient) return;
    for (const [key, resume] of this.#resumes) {
      const tenant = tenantOf(key);
      const root = tasks.task(tenant, resume.root);
      if (root === undefined) continue;
      for (const task of tasks.tasks(tenant)) {
        if (isTerminal(task.state) || task === root || !isAtOrAbove(root, task)) continue;
        if (this.#isToResume(tenant, resume, task)) yield { task, resume };
      }
    }
  }
}

const isOf = ({ treeOf }: Interruption, { trees }: TreeResume): boolean =>
  treeOf !== undefined && trees.includes(treeOf);

/** By ancestors, each asked once. */
function membersOf(
  { tasks }: InterruptionContext,
  { tenant }: DomainEvent,
  root: string,
): ReadonlyMap<string, string[]> {
  const members = new Map<string, string[]>();
  const top = tasks?.task(tenant, root);
  if (tasks === undefined || top === undefined) return members;
  members.set(root, []);
  const isInside = new Map<Task, boolean>([[top, true]]);
  for (const task of tasks.tasks(tenant)) {
    if (isTerminal(task.state) || !isBelow(task, isInside)) continue;
    if (task === top || task.parent === undefined) continue;
    if (!members.has(task.id)) members.set(task.id, []);
    const siblings = members.get(task.parent.id) ?? [];
    siblings.push(task.id);
    members.set(task.parent.id, siblings);
  }
  return members;
}

function isBelow(task: Task, known: Map<Task, boolean>): boolean {
  const asked: Task[] = [];
  let found = false;
  for (let at: Task | undefined = task; at !== undefined; at = at.parent) {
    const answer = known.get(at);
    if (answer !== undefined) {
      found = answer;
      break;
    }
    asked.push(at);
  }
  for (const each of asked) known.set(each, found);
  return found;
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;

function tenantOf(key: string): string {
  const colon = key.indexOf(":");
  return key.slice(colon + 1, colon + 1 + Number(key.slice(0, colon)));
}
