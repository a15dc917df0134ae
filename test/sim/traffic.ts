/** What the agents of a simulation say: mostly sensible, sometimes late, sometimes hostile. */

import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import { AGENTS, type Draft, ERROR, type SpeaksIn } from "./drafts.ts";
import type { SeenTask, View } from "./view.ts";

const TENANTS = ["acme", "globex", "a b"] as const;
const GRACES = [0, 1, 40, 400, 5_000, undefined];
const TIMEOUTS = [0, 1, 30, 300, 2_000, 10_000];
const NEXT: Readonly<Record<string, readonly string[]>> = {
  submitted: ["accepted", "started"],
  accepted: ["started"],
  started: ["progress", "output", "blocked"],
  progress: ["progress", "output", "blocked"],
  output: ["progress", "output", "blocked"],
  blocked: ["started", "progress"],
};

const WEIGHTS = {
  tree: 10,
  submit: 8,
  child: 16,
  work: 40,
  complete: 12,
  fail: 5,
  cancel: 6,
  request: 7,
  timeOut: 2,
  again: 9,
  otherContent: 2,
  twin: 4,
  hostile: 8,
  fact: 3,
} as const;

export class Traffic {
  readonly #random: SimRandom;
  readonly #view: View;
  readonly #weights: Record<keyof typeof WEIGHTS, number>;
  readonly #tenants: readonly string[];
  readonly #said: Draft[] = [];
  /** Ids of ended tasks are used again. */
  readonly #reuses: boolean;
  readonly #speaksIn: SpeaksIn;
  #ids = 0;

  constructor(
    random: SimRandom,
    view: View,
    { reuses, speaksIn }: { reuses: boolean; speaksIn: SpeaksIn },
  ) {
    this.#random = random;
    this.#reuses = reuses;
    this.#speaksIn = speaksIn;
    this.#view = view;
    this.#tenants = TENANTS.slice(0, random.whole(1, TENANTS.length));
    this.#weights = { ...WEIGHTS };
    // Each seed has its own mix, so that rare meetings become likely in some of them.
    for (const name of Object.keys(WEIGHTS) as (keyof typeof WEIGHTS)[]) {
      if (name !== "work") this.#weights[name] *= random.pick([0.3, 1, 1, 3]);
    }
  }

  get tenants(): readonly string[] {
    return this.#tenants;
  }

  /** What is said next: one message, or a burst. */
  next(): Draft[] {
    const drafts = this.#choose();
    this.#said.push(...drafts.filter(({ text }) => text === undefined));
    return drafts;
  }

  #choose(): Draft[] {
    const kind = this.#random.weighted(this.#weights);
    switch (kind) {
      case "tree":
        return this.#tree();
      case "submit":
        return [this.#submit(this.#tenant(), undefined)];
      case "again":
        return this.#again();
      case "otherContent":
        return this.#otherContent();
      case "twin":
        return this.#twin();
      case "hostile":
        return [this.#hostile()];
      case "fact":
        return [this.#fact()];
      default: {
        const task = this.#random.pick(this.#view.live);
        return task === undefined ? this.#tree() : [this.#about(kind, task)];
      }
    }
  }

  #about(
    kind: "child" | "work" | "complete" | "fail" | "cancel" | "request" | "timeOut",
    task: SeenTask,
  ): Draft {
    switch (kind) {
      case "child":
        return this.#submit(task.tenant, task.id);
      case "work":
        return this.#event(this.#random.pick(NEXT[task.state] ?? []) ?? "progress", task);
      case "complete":
        return this.#event("completed", this.#random.chance(0.3) ? this.#above(task) : task);
      case "fail":
        return this.#event("failed", this.#above(task), { error: ERROR });
      case "cancel":
        return this.#event("cancelled", this.#above(task));
      case "timeOut":
        return this.#event("timed_out", this.#above(task), { error: ERROR });
      case "request": {
        const grace = this.#random.pick(GRACES);
        const payload: JsonObject = grace === undefined ? {} : { grace_period_ms: grace };
        return this.#event("cancel.requested", this.#above(task), payload);
      }
    }
  }

  /** The task or one of its ancestors. */
  #above(task: SeenTask): SeenTask {
    let at = task;
    while (at.parent !== undefined && this.#random.chance(0.6)) at = at.parent;
    return at;
  }

  #tenant(): string {
    return this.#random.pick(this.#tenants) ?? "acme";
  }

  #agent(): string {
    return this.#random.pick(AGENTS);
  }

  #id(): string {
    this.#ids += 1;
    return `evt_${this.#ids}`;
  }

  #draft(tenant: string, type: string, source: string, payload: JsonObject): Draft {
    const envelope: Envelope = {
      spec_version: "0.2",
      id: this.#id(),
      type,
      source,
      created_at: "2026-11-30T10:00:00Z",
      payload,
    };
    if (this.#random.chance(0.3)) envelope.tenant_id = tenant;
    return { tenant, envelope, wants: "verdict" };
  }

  #submit(tenant: string, parent: string | undefined, named?: string): Draft {
    const random = this.#random;
    const isNamed = named !== undefined || random.chance(0.9);
    const fresh = random.chance(0.02) ? "__proto__" : `task_${this.#ids}`;
    const id = named ?? this.#usedBefore(tenant) ?? fresh;
    const payload: JsonObject = isNamed ? { task_id: id, state: "submitted" } : {};
    if (random.chance(0.25)) payload.timeout_ms = random.pick(TIMEOUTS) ?? 0;
    const draft = this.#draft(tenant, "task.submitted", this.#agent(), payload);
    if (isNamed) draft.envelope.task_id = id;
    if (parent !== undefined) draft.envelope.parent_task_id = parent;
    if (random.chance(0.4)) draft.envelope.target = this.#agent();
    return draft;
  }

  #usedBefore(tenant: string): string | undefined {
    if (!this.#reuses || this.#random.chance(0.5)) return undefined;
    const ended = this.#view.ended.filter((task) => task.tenant === tenant);
    // The older ones are more likely to be forgotten already.
    return this.#random.pick(ended.slice(0, Math.ceil(ended.length / 3)))?.id;
  }

  /** A root and a random tree below it, said in one breath; some of it at work. */
  #tree(): Draft[] {
    const random = this.#random;
    const tenant = this.#tenant();
    const name = `tree_${this.#ids}`;
    const drafts = [this.#submit(tenant, undefined, name)];
    const ids = [name];
    const size = random.pick([2, 4, 8, 16, 32]);
    for (let count = 1; count < size; count += 1) {
      const id = `${name}.${count}`;
      const parent = random.chance(0.5) ? ids.at(-1) : random.pick(ids);
      const child = this.#submit(tenant, parent, id);
      drafts.push(child);
      ids.push(id);
      if (random.chance(0.4)) {
        const { source, target } = child.envelope;
        const start = this.#draft(tenant, "task.started", target ?? source ?? "", { task_id: id });
        start.envelope.task_id = id;
        this.#inSession(start);
        drafts.push(start);
      }
    }
    return drafts;
  }

  #event(name: string, task: SeenTask, payload: JsonObject = {}): Draft {
    const entitled = task.owner ?? task.target ?? task.submitter;
    const source = this.#random.chance(0.9) ? entitled : this.#agent();
    const { id, tenant } = task;
    const draft = this.#draft(tenant, `task.${name}`, source, { task_id: id, ...payload });
    draft.envelope.task_id = id;
    this.#inSession(draft, task);
    return draft;
  }

  #inSession({ tenant, envelope }: Draft, task?: SeenTask): void {
    const session = this.#speaksIn(tenant, envelope.source ?? "", task);
    if (session !== undefined) envelope.session_id = session;
  }

  /** The same bytes once more, as a sender does that lost the verdict. */
  #again(): Draft[] {
    const said = this.#random.pick(this.#said.slice(-60));
    return said === undefined ? [] : [said];
  }

  /** Another envelope under an id that is in use. */
  #otherContent(): Draft[] {
    const said = this.#random.pick(this.#said.slice(-60));
    if (said === undefined || said.wants !== "verdict") return [];
    return [{ ...said, envelope: { ...said.envelope, created_at: "2026-11-30T11:00:00Z" } }];
  }

  /** The same ids in another tenant are other ids. */
  #twin(): Draft[] {
    const said = this.#random.pick(this.#said.slice(-60));
    const tenant = this.#random.pick(this.#tenants.filter((other) => other !== said?.tenant));
    if (said?.envelope.type !== "task.submitted" || tenant === undefined) return [];
    const { tenant_id: _, parent_task_id: __, ...envelope } = said.envelope;
    return [{ ...said, tenant, envelope }];
  }

  #hostile(): Draft {
    const tenant = this.#tenant();
    const draft = this.#draft(tenant, "task.progress", this.#agent(), { task_id: "task_1" });
    const { envelope } = draft;
    switch (this.#random.whole(0, 8)) {
      case 0:
        return { ...draft, text: '{"spec_version":"0.2","id":' };
      case 1:
        return { ...draft, subjectSource: `${envelope.source}x` };
      case 2:
        envelope.id = "hv_00000000000000000000000000";
        return draft;
      case 3:
        envelope.type = "task.exploded";
        return draft;
      case 4:
        envelope.payload = { task_id: "task_1", progress: 7 };
        return draft;
      case 5:
        return { ...draft, text: JSON.stringify(envelope).replace("{", '{"id":"evt_1",') };
      case 6: {
        const reply = "hv.acme.log.tasks.agent:a.-.task.completed";
        return { ...draft, reply, wants: "storage" };
      }
      case 7:
        return {
          ...draft,
          subject: "hv.acme.in.tasks.agent%3Aa.task.progress",
          wants: "storage",
        };
      default:
        envelope.parent_task_id = "__proto__";
        envelope.type = "task.submitted";
        return draft;
    }
  }

  /** Something that no rule of tasks concerns. */
  fact(): Draft {
    const text = { text: "hello" };
    return this.#draft(this.#tenant(), "agent.message.sent", this.#agent(), text);
  }

  #fact(): Draft {
    if (this.#random.chance(0.5)) {
      const draft = this.#draft(this.#tenant(), "session.heartbeat", this.#agent(), {});
      return { ...draft, wants: "storage" };
    }
    return this.fact();
  }
}
