/** Coordinator and manager on a real server, and agents that say one thing after the other. */
import assert from "node:assert/strict";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { openService, type RunningService } from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { type BothLogs, untilBothSettled } from "../chaos/both-logs.ts";
import { eventually } from "../chaos/deadline.ts";
import { type Answer, envelope, Sender } from "../chaos/sender.ts";
import { eventsOf, readRecords, type StoredEvent } from "../chaos/stored-log.ts";

const DEADLINE_MS = 30_000;

export const BOSS = "agent:boss";
export const WORKER = "agent:worker";

export interface StackSettings {
  tasks?: Parameters<typeof createCoordinator>[0];
  stops?: Parameters<typeof createManager>[0];
  store?: Parameters<typeof createManager>[1];
}

/** Both services in this process. */
export class Stack implements AsyncDisposable {
  readonly server: NatsServer;
  readonly services: readonly RunningService[];
  readonly #tenants: Tenant[] = [];

  private constructor(server: NatsServer, services: readonly RunningService[]) {
    this.server = server;
    this.services = services;
  }

  static async open({ tasks, stops, store }: StackSettings = {}): Promise<Stack> {
    const server = await startNatsServer();
    const config = {
      servers: server.url,
      version: "0.0.0",
      logger: pino({ level: "silent" }),
    };
    const services = [
      await openService(createCoordinator(tasks), config),
      await openService(createManager(stops, store), config),
    ];
    for (const { host } of services) await host.untilLeading();
    return new Stack(server, services);
  }

  async tenant(name: string): Promise<Tenant> {
    const tenant = new Tenant(await Sender.open(this.server.url, name));
    this.#tenants.push(tenant);
    return tenant;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { sender } of this.#tenants) await sender[Symbol.asyncDispose]();
    for (const service of this.services) await service.close();
    await this.server[Symbol.asyncDispose]();
  }
}

type More = Partial<Envelope> & { by?: string; payload?: JsonObject };

/** What an agent says of a task; who says it is the worker unless told. */
export function say(type: string, id: string, { by = WORKER, ...more }: More = {}): Envelope {
  return envelope(by, type, id, more);
}

export const requested = (id: string, payload: JsonObject = {}, more: More = {}): Envelope =>
  say("interruption.requested", id, {
    by: BOSS,
    interruption_policy: "save_and_stop",
    payload,
    ...more,
  });

export const acknowledged = (id: string, more: More = {}): Envelope =>
  say("interruption.acknowledged", id, more);

export const saved = (id: string, checkpoint = `ck_${id}`, more: More = {}): Envelope =>
  say("interruption.saved", id, {
    checkpoint_id: checkpoint,
    checkpoint_at: "2026-11-30T10:00:00Z",
    ...more,
  });

export const resumed = (id: string, checkpoint = `ck_${id}`, more: More = {}): Envelope =>
  say("interruption.resumed", id, { by: BOSS, checkpoint_id: checkpoint, ...more });

export const cancelled = (id: string, more: More = {}): Envelope =>
  say("interruption.cancelled", id, { by: BOSS, payload: { reason: "enough" }, ...more });

export class Tenant {
  readonly sender: Sender;

  constructor(sender: Sender) {
    this.sender = sender;
  }

  /** Says them one after the other; each must be taken. The last answer's payload. */
  async given(...envelopes: Envelope[]): Promise<Answer["payload"]> {
    let payload: Answer["payload"] = {};
    for (const one of envelopes) {
      const answer = await this.sender.send(one);
      assert.equal(answer.type, "event.acknowledged", `${one.type}: ${JSON.stringify(answer)}`);
      payload = answer.payload;
    }
    return payload;
  }

  /** It must be refused with this code; the details of the error. */
  async refused(sent: Envelope, code: string): Promise<Record<string, unknown>> {
    const { type, payload } = await this.sender.send(sent);
    assert.equal(type, "event.rejected", `${sent.type} ${sent.task_id} was taken`);
    assert.equal(payload.error?.code, code, JSON.stringify(payload.error));
    return payload.error?.details ?? {};
  }

  /** A task of the boss at which the worker works. */
  async running(id: string, more: More = {}): Promise<void> {
    await this.given(
      say("task.submitted", id, { by: BOSS, target: WORKER, ...more }),
      say("task.started", id),
    );
  }

  /** One that is stopped. */
  async stopped(id: string, more: More = {}): Promise<void> {
    await this.running(id, more);
    await this.given(requested(id), acknowledged(id), saved(id));
  }

  async events(domain: Domain): Promise<StoredEvent[]> {
    const all = eventsOf(await readRecords(this.sender.bus, domain));
    return all.filter(({ tenant }) => tenant === this.sender.tenant);
  }

  /** The first event of a type about a task, when it is logged. */
  async until(
    type: string,
    id: string,
    isIt: (event: Envelope) => boolean = () => true,
  ): Promise<Envelope> {
    const domain = type.startsWith("task.") ? "tasks" : "interruptions";
    return await eventually(DEADLINE_MS, `${type} of ${id}`, async () => {
      const events = await this.events(domain);
      return events.find(
        ({ envelope: found }) => found.type === type && found.task_id === id && isIt(found),
      )?.envelope;
    });
  }

  /** What the log says of a task, by type. */
  async told(domain: Domain, id: string): Promise<string[]> {
    const events = await this.events(domain);
    return events
      .filter(({ envelope: { task_id, type } }) => task_id === id && !type.endsWith(".rejected"))
      .map(({ envelope: { type } }) => type);
  }

  /** Nothing is owed any more, and no rule was broken. */
  settled(): Promise<BothLogs> {
    return untilBothSettled(this.sender.bus, DEADLINE_MS);
  }
}

/** Whether an entry says that a grace has passed. */
export const isExpiry = ({ payload }: Envelope): boolean =>
  (payload as JsonObject).expired === true;

export const payloadOf = ({ payload }: Envelope): JsonObject => payload as JsonObject;

export const codeOf = (event: Envelope): unknown => (payloadOf(event).error as JsonObject).code;
