import { Fifo } from "@harmovela/envelope";
import type { GentlePlan, Task } from "./task.ts";

/** A task that is terminal, and since when. */
interface Ended {
  readonly tenant: string;
  readonly task: Task;
  readonly at: number;
}

/**
 * All tasks and cancel requests by tenant, ended ones for the retention; ids are data, never property
 * names.
 */
export class Forest {
  readonly #tasks = new Map<string, Map<string, Task>>();
  readonly #gentle = new Map<string, Map<string, GentlePlan>>();
  readonly #ended = new Fifo<Ended>();
  /** Tasks of the log, forgotten ones included. */
  total = 0;
  live = 0;
  /** Begun plans with a task as root, and open cancel requests: while there are none, no walk. */
  cascades = 0;
  requests = 0;

  get(tenant: string, id: string): Task | undefined {
    return this.#tasks.get(tenant)?.get(id);
  }

  add(tenant: string, task: Task): void {
    childMap(this.#tasks, tenant).set(task.id, task);
    this.total += 1;
    this.live += 1;
    if (task.parent === undefined) return;
    task.parent.liveChildren += 1;
    task.parent.children += 1;
  }

  /** Takes out a task that was offered only (spec 5.6). */
  remove(tenant: string, task: Task): void {
    this.#close(tenant, task);
    this.total -= 1;
    if (task.parent !== undefined) task.parent.children -= 1;
    this.#tasks.get(tenant)?.delete(task.id);
  }

  openRequest(tenant: string, plan: GentlePlan): void {
    childMap(this.#gentle, tenant).set(plan.id, plan);
    plan.root.gentle ??= [];
    plan.root.gentle.push(plan);
    this.requests += 1;
  }

  request(tenant: string, id: string): GentlePlan | undefined {
    return this.#gentle.get(tenant)?.get(id);
  }

  /** Cancel requests whose root is live and that nobody has given up. */
  *openRequests(): IterableIterator<GentlePlan> {
    for (const ofTenant of this.#gentle.values()) {
      for (const plan of ofTenant.values()) if (!plan.isAbandoned) yield plan;
    }
  }

  tenants(): Iterable<string> {
    return this.#tasks.keys();
  }

  /** Those of a tenant, ended ones included. */
  of(tenant: string): Iterable<Task> {
    return this.#tasks.get(tenant)?.values() ?? [];
  }

  end(tenant: string, task: Task, at: number): void {
    this.#close(tenant, task);
    this.#ended.push({ tenant, task, at });
  }

  /** Takes out the tasks that ended before a time: their ids are free (architecture, section 6). */
  forget(before: number): Ended[] {
    const forgotten: Ended[] = [];
    for (let oldest = this.#ended.peek(); oldest; oldest = this.#ended.peek()) {
      if (oldest.at >= before) break;
      this.#ended.shift();
      const { tenant, task } = oldest;
      const ofTenant = this.#tasks.get(tenant);
      if (ofTenant?.get(task.id) === task) ofTenant.delete(task.id);
      forgotten.push(oldest);
    }
    return forgotten;
  }

  /** It is no longer live: its plans and requests go with it. */
  #close(tenant: string, task: Task): void {
    this.live -= 1;
    if (task.parent !== undefined) task.parent.liveChildren -= 1;
    if (task.plan !== undefined) this.cascades -= 1;
    task.plan = undefined;
    for (const { id } of task.gentle ?? []) {
      this.#gentle.get(tenant)?.delete(id);
      this.requests -= 1;
    }
    task.gentle = undefined;
    task.promisedEnd = undefined;
  }
}

function childMap<T>(maps: Map<string, Map<string, T>>, key: string): Map<string, T> {
  let map = maps.get(key);
  if (map === undefined) {
    map = new Map();
    maps.set(key, map);
  }
  return map;
}
