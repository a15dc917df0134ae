/**
 * A log written entry by entry, legal or not. `stamp` turns the entries into stored records, so that
 * a test can take entries out, swap or double them and still get a log whose stamps are right.
 */
import type { Domain } from "@harmovela/envelope";
import type { StoredRecord } from "../src/index.ts";

export const STREAM = "HV_LOG_TASKS";
export const SERVICE = "service:delegation-coordinator";
export const T0 = 1_800_000_000_000;

export interface Draft {
  spec_version: string;
  id: string;
  type: string;
  source: string;
  created_at: string;
  payload: unknown;
  [field: string]: unknown;
}

export interface Item {
  tenant: string | undefined;
  cause: string;
  at: number;
  /** `Hv-Seen`; "" or none where nothing is observed. */
  seen?: string;
  /** An event has an envelope, a control entry kind and body. */
  envelope?: Draft;
  kind?: string;
  body?: Record<string, unknown>;
  /** What the record says instead of what it should; a header of "" is left out. */
  instead?: Instead;
}

export interface Instead {
  seq?: number;
  subject?: string;
  headers?: Record<string, string>;
  data?: string | Uint8Array;
  cursor?: string;
  sequence?: number;
}

type Fields = { [field: string]: unknown; payload?: unknown };

export class LogBuilder {
  readonly items: Item[] = [];
  tenant = "acme";
  at = T0;
  intake = 0;
  /** How far the entries from here on have seen another log, as `Hv-Seen` says it. */
  seen: () => string = () => "";
  readonly domain: Domain;
  #ids = 0;

  constructor(domain: Domain = "tasks") {
    this.domain = domain;
    this.epoch();
  }

  /** Sequence of the newest entry. */
  get last(): number {
    return this.items.length;
  }

  wait(ms: number): this {
    this.at += ms;
    return this;
  }

  agentId(): string {
    this.#ids += 1;
    return `evt_${this.#ids}`;
  }

  derivedId(): string {
    this.#ids += 1;
    return `hv_${String(this.#ids).padStart(26, "0")}`;
  }

  draft(type: string, source: string, fields: Fields = {}): Draft {
    return {
      spec_version: "0.2",
      id: this.agentId(),
      type,
      source,
      created_at: "2026-11-30T10:00:00Z",
      payload: {},
      ...fields,
    };
  }

  push(item: Omit<Item, "tenant" | "at"> & { tenant?: string | undefined }): void {
    this.items.push({ tenant: this.tenant, at: this.at, seen: this.seen(), ...item });
  }

  /** An event that came through the intake and was accepted. */
  send(type: string, source: string, fields: Fields = {}, instead: Instead = {}): Draft {
    const envelope = this.draft(type, source, fields);
    this.intake += 1;
    this.push({ cause: `in:${this.intake}`, envelope, instead });
    return envelope;
  }

  /** An event that the service owes. */
  owe(cause: string, type: string, fields: Fields = {}, instead: Instead = {}): Draft {
    const envelope = this.draft(type, SERVICE, { id: this.derivedId(), ...fields });
    this.push({ cause: `owed:${cause}`, envelope, instead });
    return envelope;
  }

  control(kind: string, body: Record<string, unknown>, instead: Instead = {}): void {
    this.push({ tenant: undefined, cause: `in:${this.intake}`, kind, body, instead });
  }

  epoch(settings: Record<string, unknown> = {}): void {
    const body = { instance: "i1", version: "0.1.0", settings, streams: {} };
    this.push({ tenant: undefined, cause: "owed:epoch", kind: "epoch", body });
  }

  submit(id: string, fields: Fields & { source?: string; parent?: string } = {}): Draft {
    const { source = "agent:boss", parent, payload, ...rest } = fields;
    return this.send("task.submitted", source, {
      task_id: id,
      payload: payload ?? { task_id: id },
      ...(parent === undefined ? {} : { parent_task_id: parent }),
      ...rest,
    });
  }

  /** A `task.<name>` event of an agent. */
  task(name: string, id: string, source = "agent:worker", fields: Fields = {}): Draft {
    return this.send(`task.${name}`, source, { task_id: id, payload: { task_id: id }, ...fields });
  }

  /** A task at work. */
  running(id: string, fields: Fields & { source?: string; parent?: string } = {}): void {
    this.submit(id, fields);
    this.task("started", id);
  }

  /** A plan begins whose event is logged later. */
  begin(envelope: Draft, cause?: string): Draft {
    if (cause === undefined) this.intake += 1;
    const body = { plan: { id: envelope.id, kind: envelope.type, envelope } };
    this.push({ cause: cause ?? `in:${this.intake}`, kind: "begun", body });
    return envelope;
  }

  /** An agent cancels a task that has live descendants. */
  beginCancel(id: string, source = "agent:boss"): Draft {
    return this.begin(
      this.draft("task.cancelled", source, { task_id: id, payload: { task_id: id } }),
    );
  }

  /** One derived cancel of a plan. */
  step(plan: Draft, id: string, parentEnd: string, fields: Fields = {}): Draft {
    return this.owe(plan.id, "task.cancelled", {
      task_id: id,
      causation_id: parentEnd,
      correlation_id: plan.id,
      payload: { task_id: id, state: "cancelled", reason: "parent task cancelled" },
      ...fields,
    });
  }

  /** The event that ends a plan. */
  finish(plan: Draft, fields: Fields = {}): void {
    this.push({ cause: `owed:${plan.id}`, envelope: { ...plan, ...fields } });
  }

  /** A derived cancel request. */
  ask(plan: Draft, id: string, fields: Fields = {}): Draft {
    return this.owe(plan.id, "task.cancel.requested", {
      task_id: id,
      causation_id: plan.id,
      correlation_id: plan.id,
      payload: { task_id: id },
      ...fields,
    });
  }

  /** A cancel that the service makes of a cancel request; `cause` names what it follows from. */
  gentleStep(
    plan: Draft,
    id: string,
    isForced: boolean,
    fields: Fields & { cause?: string } = {},
  ): Draft {
    const { cause = plan.id, ...rest } = fields;
    const payload = { task_id: id, reason: "parent task cancelled" };
    return this.step(plan, id, cause, {
      payload: isForced ? { ...payload, forced: true } : payload,
      ...rest,
    });
  }

  timeOut(id: string, fields: Fields = {}): Draft {
    return this.owe(`deadline:${id}`, "task.timed_out", {
      task_id: id,
      payload: {
        task_id: id,
        state: "timed_out",
        error: { code: "task_timeout", message: "the deadline has passed", retryable: true },
      },
      ...fields,
    });
  }

  /** The service refuses what an agent sent. */
  refuse(refused: string, fields: Fields = {}, instead: Instead = {}): Draft {
    return this.send(
      "event.rejected",
      SERVICE,
      {
        id: this.derivedId(),
        target: "agent:worker",
        causation_id: refused,
        payload: {
          acknowledged_event_id: refused,
          error: { code: "task_error", message: "illegal", retryable: false },
        },
        ...fields,
      },
      { headers: { "Hv-Digest": "a".repeat(64) }, ...instead },
    );
  }

  /** A message that no leader wrote. */
  foreign(headers: Record<string, string> = { "Hv-Epoch": "" }): void {
    const envelope = this.draft("task.completed", "agent:intruder", { task_id: "task_p" });
    this.push({ cause: "in:1", envelope, instead: { headers, cursor: "none", sequence: 0 } });
  }

  records(): StoredRecord[] {
    return stamp(this.items, this.domain);
  }
}

/** The stored form of entries: sequences, cursors, epochs and counts as a leader writes them. */
export function stamp(items: readonly Item[], domain: Domain = "tasks"): StoredRecord[] {
  const sequences = new Map<string, number>();
  let epoch = 0;
  let prev = 0;
  return items.map((item, index) => {
    const { instead = {} } = item;
    const seq = instead.seq ?? index + 1;
    if (item.kind === "epoch") epoch = seq;
    const headers: Record<string, string> = {
      "Hv-Cause": item.cause,
      "Hv-At": String(item.at),
      "Hv-Epoch": String(epoch),
      "Hv-Prev": String(prev),
      "Hv-Seen": item.seen ?? "",
      ...instead.headers,
    };
    for (const [name, value] of Object.entries(headers)) if (value === "") delete headers[name];
    const isForeign = headers["Hv-Epoch"] !== String(epoch) || headers["Hv-Prev"] !== String(prev);
    if (!isForeign) prev = seq;
    let data: string;
    if (item.envelope === undefined) {
      data = JSON.stringify(item.kind === "epoch" ? { epoch: seq, ...item.body } : item.body);
    } else {
      const tenant = item.tenant ?? "-";
      const sequence = (sequences.get(tenant) ?? 0) + 1;
      if (!isForeign) sequences.set(tenant, instead.sequence ?? sequence);
      const stamps = {
        cursor: instead.cursor ?? `${streamOf(domain)}:${seq}`,
        sequence: instead.sequence ?? sequence,
      };
      const { delivery } = item.envelope;
      data = JSON.stringify({
        ...item.envelope,
        delivery: { ...(typeof delivery === "object" ? delivery : {}), ...stamps },
      });
    }
    return {
      seq,
      time: item.at + 1,
      subject: instead.subject ?? subjectOf(item, domain),
      headers,
      data: instead.data ?? data,
    };
  });
}

export const streamOf = (domain: Domain): string => `HV_LOG_${domain.toUpperCase()}`;

function subjectOf(item: Item, domain: Domain): string {
  const tenant = item.tenant ?? "-";
  if (item.envelope === undefined) return `hv.${tenant}.ctl.${domain}.${item.kind}`;
  const { source, target, type } = item.envelope;
  return `hv.${tenant}.log.${domain}.${source}.${target ?? "-"}.${type}`;
}
