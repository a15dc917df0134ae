import type { Cause, Decider, DomainEntry, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { Given } from "@harmovela/testkit";
import {
  createManagerDecider,
  DEFAULT_MANAGER_SETTINGS,
  type ManagerSettings,
} from "../src/index.ts";
import { MANAGER_READS } from "../src/reads.ts";
import type { ManagerState } from "../src/state.ts";

export const SERVICE = DEFAULT_MANAGER_SETTINGS.service;
export const COORDINATOR = DEFAULT_MANAGER_SETTINGS.coordinator;
/** Where the clock stands at first, and `created_at` of what says nothing else. */
export const NOW = Date.UTC(2026, 10, 30, 10);

/** A service that says more at one time is taken for one that never stops. */
const SAID_MAX = 20_000;

export const iso = (ms: number): string => new Date(ms).toISOString();

export type Fields = Partial<Envelope>;
let made = 0;

export function event(type: string, payload: JsonObject = {}, fields: Fields = {}): Envelope {
  made += 1;
  return {
    spec_version: "0.2",
    id: `evt_${made}`,
    type,
    source: "agent:w",
    created_at: iso(NOW),
    payload,
    ...fields,
  };
}

/** An entry that was folded, in the order of folding, with the log that it is from. */
export type Folded = { log: "own" | "tasks"; entry: DomainEntry };

/** A scenario with the two logs that the service folds. */
export class World extends Given<ManagerState> {
  readonly journal: Folded[];
  readonly settings: ManagerSettings;
  #tasksSeq = 0;

  constructor(changes: Partial<ManagerSettings> = {}) {
    const settings = { ...DEFAULT_MANAGER_SETTINGS, ...changes };
    const journal: Folded[] = [];
    const decider = createManagerDecider(settings);
    const recorded: Decider<ManagerState> = {
      ...decider,
      evolve: (state, entry) => {
        decider.evolve(state, entry);
        journal.push({ log: "own", entry });
      },
      observe: (state, domain, entry) => {
        decider.observe?.(state, domain, entry);
        journal.push({ log: "tasks", entry });
      },
    };
    super(recorded, { service: SERVICE, at: NOW });
    this.journal = journal;
    this.settings = settings;
  }

  /** Entries of the log of `tasks`, at the clock's time. */
  tasks(...envelopes: Envelope[]): this {
    for (const envelope of envelopes) this.ofTasks({ kind: "event", envelope });
    return this;
  }

  ofTasks(
    body:
      | { kind: "event"; envelope: Envelope }
      | { kind: "begun"; plan: Extract<DomainEntry, { kind: "begun" }>["plan"] }
      | { kind: "obligation_failed"; id: string; reason: string },
    cause: Cause = { in: this.#tasksSeq + 1 },
  ): this {
    this.#tasksSeq += 1;
    const seq = this.#tasksSeq;
    const frame = { seq, at: this.now, epoch: 1, prev: seq - 1, seen: {}, cause };
    this.decider.observe?.(this.state, "tasks", { ...frame, tenant: this.tenant, ...body });
    return this;
  }

  /** The state that a fresh fold of everything gives, in the same order. */
  override refold(journal: readonly Folded[] = this.journal): ManagerState {
    const decider = createManagerDecider(this.settings);
    const state = decider.initial();
    for (const { log, entry } of journal) {
      if (log === "own") decider.evolve(state, entry);
      else decider.observe?.(state, "tasks", entry);
    }
    return state;
  }

  /** What is asked of the coordinator now, in order. */
  requests(): Envelope[] {
    const underWay = new Set<string>();
    const asked: Envelope[] = [];
    for (;;) {
      const owed = this.decider.owed(this.state, this.now, { requests: underWay });
      if (owed === undefined || !("request" in owed)) return asked;
      underWay.add(owed.request.id);
      asked.push(owed.request);
    }
  }

  /** The only request, which must be there. */
  request(): Envelope {
    const [only, ...more] = this.requests();
    if (only === undefined || more.length > 0) throw new Error(`${more.length + 1} requests`);
    return only;
  }

  /** Works off what is due, requests aside, and returns what the service said. */
  said(now: number = this.now): Envelope[] {
    this.now = now;
    const underWay = new Set<string>();
    const from = this.log.length;
    for (;;) {
      const owed = this.decider.owed(this.state, this.now, { requests: underWay });
      if (owed === undefined || "wakeAt" in owed) break;
      if (this.log.length - from > SAID_MAX) throw new Error("the service never comes to rest");
      if ("request" in owed) underWay.add(owed.request.id);
      else if ("event" in owed) {
        const { event: envelope, tenant, cause } = owed;
        this.append({ kind: "event", envelope, tenant, cause: { owed: cause } });
      }
    }
    return envelopesOf(this.log.slice(from));
  }

  /** When the service wants to look again, requests aside. */
  wakeAt(): number | undefined {
    const requests = new Set(this.requests().map(({ id }) => id));
    const owed = this.decider.owed(this.state, this.now, { requests });
    return owed && "wakeAt" in owed ? owed.wakeAt : undefined;
  }

  /** The coordinator has logged what it was asked for. */
  grant(request: Envelope): this {
    return this.tasks(request);
  }

  /** The coordinator has refused it. */
  refuse(request: Envelope, code: string, retryable = false): this {
    const error = { code, message: "no", retryable };
    return this.tasks(
      event(
        "event.rejected",
        { acknowledged_event_id: request.id, error },
        { source: COORDINATOR, causation_id: request.id },
      ),
    );
  }

  read(verb: keyof typeof MANAGER_READS, params: JsonObject): JsonObject {
    const context = { tenant: this.tenant, now: this.now };
    return MANAGER_READS[verb](this.state, params, context) as JsonObject;
  }

  why(id: string): string {
    return (this.read("why", { task_id: id }) as unknown as string[]).join(" ");
  }
}

export function world(settings: Partial<ManagerSettings> = {}): World {
  return new World(settings);
}

export function submitted(id: string, fields: Fields = {}): Envelope {
  return event("task.submitted", { task_id: id }, { source: "agent:s", task_id: id, ...fields });
}

export function task(type: string, id: string, fields: Fields = {}): Envelope {
  return event(`task.${type}`, { task_id: id }, { task_id: id, ...fields });
}

/** `t`, submitted by agent:s and taken by agent:w. */
export function started(id = "t", fields: Fields = {}, taken: Fields = {}): Envelope[] {
  return [submitted(id, fields), task("started", id, taken)];
}

export function opened(session: string, source = "agent:w"): Envelope {
  const payload = { session_id: session, version: "0.2" };
  return event("session.opened", payload, { source, session_id: session });
}

export function closed(session: string, fields: Fields = {}): Envelope {
  return event("session.closed", { session_id: session }, { session_id: session, ...fields });
}

/** Of `t` by agent:s, `save_and_stop` unless told. */
export function requested(payload: JsonObject = {}, fields: Fields = {}): Envelope {
  return event("interruption.requested", payload, {
    source: "agent:s",
    task_id: "t",
    interruption_policy: "save_and_stop",
    ...fields,
  });
}

/** By agent:w, who has `t`. */
export function acknowledged(fields: Fields = {}): Envelope {
  return event("interruption.acknowledged", {}, { task_id: "t", ...fields });
}

export function saved(checkpoint = "ck", fields: Fields = {}, payload: JsonObject = {}): Envelope {
  const at = { checkpoint_id: checkpoint, checkpoint_at: iso(NOW) };
  return event("interruption.saved", payload, { task_id: "t", ...at, ...fields });
}

export function resumed(
  checkpoint = "ck",
  fields: Fields = {},
  payload: JsonObject = {},
): Envelope {
  const more = { source: "agent:s", task_id: "t", checkpoint_id: checkpoint };
  return event("interruption.resumed", payload, { ...more, ...fields });
}

export function cancelled(fields: Fields = {}, payload: JsonObject = {}): Envelope {
  const more = { source: "agent:s", task_id: "t" };
  return event("interruption.cancelled", { reason: "no more", ...payload }, { ...more, ...fields });
}

/** `u` undoes `t`, asked for by agent:s. */
export function compensation(payload: JsonObject = {}, fields: Fields = {}): Envelope {
  const said = { reason: "wrong", description: "take it back", ...payload };
  const more = { source: "agent:s", task_id: "u", compensation_id: "t" };
  return event("compensation.requested", said, { ...more, ...fields });
}

export function compensated(fields: Fields = {}): Envelope {
  return event("compensation.completed", {}, { task_id: "u", compensation_id: "t", ...fields });
}

export function envelopesOf(entries: readonly DomainEntry[]): Envelope[] {
  return entries.flatMap((entry) => (entry.kind === "event" ? [entry.envelope] : []));
}

export function payloadOf(envelope: Envelope | undefined): JsonObject {
  const payload = envelope?.payload;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new Error("no payload object");
  }
  return payload;
}

/** `<type> <task>` of what was said. */
export function brief(envelopes: readonly Envelope[]): string[] {
  return envelopes.map(({ type, task_id: id }) => `${type.split(".").at(-1)} ${id}`);
}
