/**
 * Processes of agents: each opens a session, is heard for a while on one of the two ways, and then
 * says goodbye or just falls silent (spec 5.1).
 */
import { type Bus, type Clock, liveSubject } from "@harmovela/bus";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { Dealings, SeenSession } from "./dealings.ts";
import type { Draft, Drafts, SpeaksIn } from "./drafts.ts";

/** Short, so that sessions are lost within a life. 0: no heartbeats are agreed. */
const INTERVALS = [0, 1, 100, 150, 400] as const;
const BEATS = [0, 1, 4, 12] as const;
const PROFILES = [
  {},
  {},
  {},
  { profiles: ["harmovela.runtime-semantics.v1"] },
  { required_profiles: ["harmovela.security.v1"] },
] as const;
const BEAT = "session.heartbeat";

export interface SessionTrafficParts {
  random: SimRandom;
  drafts: Drafts;
  dealings: Dealings;
  clock: Clock;
  bus: Bus;
  send(draft: Draft): void;
}

export class SessionTraffic {
  readonly #parts: SessionTrafficParts;
  readonly #encoder = new TextEncoder();
  #isSilent = false;

  constructor(parts: SessionTrafficParts) {
    this.#parts = parts;
  }

  /** Mostly the session that has the task, or one of the sender's own; sometimes none, or one that is over. */
  readonly speaksIn: SpeaksIn = (tenant, source, task) => {
    const { random, dealings } = this.#parts;
    const has = dealings.session(tenant, task?.session);
    if (has?.isOver === false && random.chance(0.92)) return has.id;
    const own = dealings.sessions.filter((at) => at.tenant === tenant && at.initiator === source);
    const live = own.filter(({ isOver }) => !isOver);
    if (live.length > 0 && random.chance(0.75)) return random.pick(live)?.id;
    return random.chance(0.05) ? random.pick(own)?.id : undefined;
  };

  open(tenant: string, source: string): Draft {
    const { random, drafts } = this.#parts;
    const id = `sess_${drafts.count}`;
    const interval = random.pick(INTERVALS);
    const capabilities = { heartbeat_interval_ms: interval, ...random.pick(PROFILES) };
    const beats = random.pick(BEATS);
    const isLive = random.chance(0.5);
    if (interval > 0) this.#beat({ id, tenant, initiator: source, isOver: false }, beats, isLive);
    const payload: JsonObject = {
      session_id: id,
      version: "0.2",
      capabilities: JSON.parse(JSON.stringify(capabilities)) as JsonObject,
    };
    return drafts.make("session.opened", { tenant, source, session: id, payload });
  }

  #beat(session: SeenSession, left: number, isLive: boolean): void {
    const { random, clock, drafts, bus, send } = this.#parts;
    if (left === 0) return;
    clock.after(random.whole(20, 120), () => {
      if (this.#isSilent) return;
      const { id, tenant, initiator: source } = session;
      const draft = drafts.make(BEAT, { tenant, source, session: id, payload: { session_id: id } });
      if (isLive) {
        const data = this.#encoder.encode(JSON.stringify(draft.envelope));
        bus.publish(liveSubject({ tenant, source, type: BEAT }), {}, data);
      } else send(draft);
      this.#beat(session, left - 1, isLive);
    });
  }

  /** A goodbye, or an error that the process reports. Undefined: nobody has a session. */
  close(): Draft | undefined {
    const { random, drafts, dealings } = this.#parts;
    const session = random.pick(dealings.sessions);
    if (session === undefined) return undefined;
    const { id, tenant, initiator: source } = session;
    const fields = { tenant, source, session: id };
    if (random.chance(0.8)) {
      return drafts.make("session.closed", { ...fields, payload: { session_id: id } });
    }
    const error = { code: "session_error", message: "out of memory", retryable: false };
    return drafts.make("session.error", { ...fields, payload: { session_id: id, error } });
  }

  /** A session opened again, or somebody who speaks for a session of another agent. */
  intrude(source: string): Draft | undefined {
    const { random, drafts, dealings } = this.#parts;
    const session = random.pick(dealings.sessions);
    if (session === undefined) return undefined;
    const { id, tenant, initiator } = session;
    if (random.chance(0.5)) {
      const payload = { session_id: id, version: "0.2" };
      return drafts.make("session.opened", { tenant, source: initiator, session: id, payload });
    }
    const type = random.pick(["session.closed", "session.heartbeat", "agent.message.sent"]);
    const payload: JsonObject =
      type === "agent.message.sent" ? { text: "mine" } : { session_id: id };
    return drafts.make(type, { tenant, source, session: id, payload });
  }

  /** Every process dies: from now on nobody is heard. */
  fallSilent(): void {
    this.#isSilent = true;
  }
}
