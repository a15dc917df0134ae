/** What agents know of the tasks: what a plain observer of `ev` has seen so far, nothing else. */
import type { Envelope } from "@harmovela/envelope";
import { Dealings } from "./dealings.ts";

export interface SeenTask {
  readonly id: string;
  readonly tenant: string;
  readonly parent: SeenTask | undefined;
  readonly submitter: string;
  readonly target: string | undefined;
  owner: string | undefined;
  /** In which its owner took it. */
  session: string | undefined;
  /** The newest event, without `task.`. */
  state: string;
}

const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "timed_out"]);

export class View {
  readonly dealings = new Dealings();
  readonly #tasks = new Map<string, SeenTask>();
  readonly #live = new Map<string, SeenTask>();

  get live(): SeenTask[] {
    return [...this.#live.values()];
  }

  get known(): SeenTask[] {
    return [...this.#tasks.values()];
  }

  get ended(): SeenTask[] {
    return this.known.filter(({ state }) => ENDS.has(state));
  }

  see(tenant: string, envelope: Envelope): void {
    const { type, task_id: id } = envelope;
    this.dealings.see(tenant, envelope);
    if (id === undefined) return;
    if (type.startsWith("task.")) this.#seeTask(tenant, id, envelope);
    else if (type.startsWith("delegation.")) this.#seeOffer(tenant, id, envelope);
  }

  #seeTask(tenant: string, id: string, envelope: Envelope): void {
    const { type, source, session_id: session } = envelope;
    const name = type.slice("task.".length);
    if (name === "submitted") {
      this.#add(tenant, id, envelope, envelope.target);
      return;
    }
    const key = `${tenant} ${id}`;
    const task = this.#tasks.get(key);
    if (task === undefined || name === "cancel.requested") return;
    task.state = name;
    if (name === "accepted" || name === "started") {
      task.owner ??= source;
      task.session ??= session;
    }
    if (ENDS.has(name)) this.#live.delete(key);
  }

  /** An offer of a task that nobody has submitted makes it. */
  #seeOffer(tenant: string, id: string, envelope: Envelope): void {
    const { type, source, delegated_to: to, session_id: session } = envelope;
    const key = `${tenant} ${id}`;
    const task = this.#live.get(key);
    if (type === "delegation.requested" && task === undefined) {
      this.#add(tenant, id, envelope, to);
    } else if (task && type === "delegation.accepted" && task.owner === undefined) {
      task.owner = source;
      task.session = session;
      if (task.state === "submitted") task.state = "accepted";
    } else if (task && type === "delegation.handoff.completed") task.owner = to ?? task.owner;
  }

  #add(tenant: string, id: string, envelope: Envelope, target: string | undefined): void {
    const key = `${tenant} ${id}`;
    const task: SeenTask = {
      id,
      tenant,
      parent: this.#tasks.get(`${tenant} ${envelope.parent_task_id}`),
      submitter: envelope.source,
      target,
      owner: undefined,
      session: undefined,
      state: "submitted",
    };
    this.#tasks.set(key, task);
    this.#live.set(key, task);
  }
}
