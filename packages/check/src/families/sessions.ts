import {
  closure,
  type Envelope,
  Fifo,
  isHarness,
  isService,
  missingConditionalFields,
  sessionIdOf,
} from "@harmovela/envelope";
import { isObject } from "../record.ts";
import {
  type Instance,
  payloadField,
  type Sessions,
  type TaskContext,
  type TaskEvent,
} from "../tasks/context.ts";

interface Session extends Instance {
  readonly id: string;
  readonly initiator: string;
  state: "opened" | "ready" | "closed" | "error";
  /** Asked for by the opening. */
  readonly wanted: readonly string[];
  readonly required: readonly string[];
  /** Negotiated. */
  profiles: readonly string[];
  /** Before this time nobody may find it silent; undefined when no heartbeats were agreed. */
  silentFrom: number | undefined;
  endedAt: number | undefined;
  endedBy: string | undefined;
  lostBy: string | undefined;
}

/** What the rules of sessions need of the rest. */
type SessionContext = Omit<TaskContext, "sessions">;

/** Missed intervals after which a session is lost (spec 5.1). */
const MISSED_MAX = 3;

/** What a session that nobody opened may be asked with (spec 5.1). */
const BEFORE_OPEN: ReadonlySet<string> = new Set(["session.opened", "capabilities.requested"]);

/** Sessions: opened, answered by the service, and over for good (spec 4.3, 5.1). */
export class SessionRules implements Sessions {
  readonly #context: SessionContext;
  readonly #sessions = new Map<string, Session>();
  /** By the time of their end. */
  readonly #ended = new Fifo<{ key: string; session: Session; at: number }>();

  constructor(context: SessionContext) {
    this.#context = context;
  }

  /** The profiles under which an event is judged (spec 4.2). */
  profiles({ tenant, envelope }: TaskEvent): readonly string[] {
    const { settings, isLenient } = this.#context;
    const id = sessionIdOf(envelope);
    const session = id === undefined ? undefined : this.#get(tenant, id);
    // In the middle of a log it may have been opened before.
    const isUnseen = id !== undefined && isLenient;
    return session?.profiles ?? (isUnseen ? [] : settings.defaultProfiles);
  }

  /** `unknown`: nobody opened it, or its end is forgotten. */
  state(tenant: string, id: string): "unknown" | "live" | "ended" {
    const session = this.#get(tenant, id);
    if (session === undefined) return "unknown";
    return session.endedAt === undefined ? "live" : "ended";
  }

  own({ tenant, envelope }: TaskEvent): Session | undefined {
    const { session_id: id, source } = envelope;
    const session = id === undefined ? undefined : this.#get(tenant, id);
    return session?.initiator === source && session.endedAt === undefined ? session : undefined;
  }

  /** What its session lets an envelope of the intake say. */
  judge(event: TaskEvent): void {
    const { sink } = this.#context;
    const { tenant, envelope } = event;
    this.#checkFields(event);
    const id = sessionIdOf(envelope);
    if (id === undefined || isService(envelope.source)) return;
    const session = this.#get(tenant, id);
    if (session === undefined) this.#judgeUnknown(envelope, id);
    else if (session.endedAt !== undefined) {
      sink.add("session-closed", `${envelope.type} of ${id}, which is ${session.state}`);
    } else if (envelope.type === "session.opened") {
      sink.add("session-reopened", `${id} is ${session.state}`);
    } else if (envelope.type.startsWith("session.") && !isOwn(session, envelope.source)) {
      sink.add("session-owner", `${envelope.type} of ${id} by ${envelope.source}`);
    }
  }

  #judgeUnknown({ type }: Envelope, id: string): void {
    const { sink, settings, isLenient } = this.#context;
    if (!settings.strictSessions || isLenient || BEFORE_OPEN.has(type)) return;
    sink.add("session-unknown", `${type} of ${id}, which nobody opened`);
  }

  #checkFields(event: TaskEvent): void {
    const missing = missingConditionalFields(event.envelope, this.profiles(event));
    if (missing.length === 0) return;
    this.#context.sink.add("profile-fields", `${event.envelope.type} lacks ${missing.join(", ")}`);
  }

  /** Follows the session; an echo of the runtime changes nothing. */
  onEvent(event: TaskEvent): void {
    const { tenant, envelope, owedBy } = event;
    const id = sessionIdOf(envelope);
    if (!envelope.type.startsWith("session.") || id === undefined) return;
    const session = this.#get(tenant, id);
    if (owedBy !== undefined) this.#answer(event, id, session);
    else if (isHarness(envelope.source)) return;
    else if (envelope.type === "session.opened") {
      if (session === undefined) this.#sessions.set(keyOf(tenant, id), open(id, envelope));
    } else if (envelope.type === "session.closed" || envelope.type === "session.error") {
      const ended = session ?? open(id, envelope);
      this.#sessions.set(keyOf(tenant, id), ended);
      this.#end(event, id, ended);
    }
  }

  /** What the service says by itself: ready or an error, once; later that nobody was heard. */
  #answer(event: TaskEvent, id: string, session: Session | undefined): void {
    const { sink, isLenient } = this.#context;
    const { envelope, frame } = event;
    if (session === undefined) {
      if (!isLenient) sink.add("session-answer", `${envelope.type} of ${id}, which nobody opened`);
      return;
    }
    const isTimeOut = isLoss(envelope);
    if (session.state !== (isTimeOut ? "ready" : "opened")) {
      sink.add("session-answer", `${envelope.type} of ${id}, which is ${session.state}`);
      return;
    }
    if (envelope.type === "session.ready") this.#makeReady(event, id, session);
    else if (envelope.type === "session.error") {
      const { silentFrom } = session;
      if (isTimeOut && (silentFrom === undefined || frame.at < silentFrom)) {
        const message = `${id} is lost at ${frame.at}, not before ${silentFrom ?? "it is closed"}`;
        sink.add("session-timeout", message);
      }
      this.#end(event, id, session);
    }
  }

  #makeReady({ envelope, frame }: TaskEvent, id: string, session: Session): void {
    const stated = payloadField(envelope, "capabilities");
    const capabilities = isObject(stated) ? stated : {};
    const granted = texts(capabilities.profiles);
    const { wanted, required } = session;
    const allowed = new Set(closure([...wanted, ...required]));
    const isWhole = required.every((profile) => granted.includes(profile));
    if (!isWhole || !granted.every((profile) => allowed.has(profile))) {
      this.#context.sink.add("session-profiles", `${id} gets ${granted.join(", ") || "none"}`);
    }
    session.state = "ready";
    session.profiles = granted;
    const { heartbeat_interval_ms: interval } = capabilities;
    if (typeof interval === "number" && interval > 0) {
      session.silentFrom = frame.at + MISSED_MAX * interval;
    }
  }

  #end({ tenant, envelope, frame }: TaskEvent, id: string, session: Session): void {
    if (session.endedAt !== undefined) return;
    session.state = envelope.type === "session.closed" ? "closed" : "error";
    session.endedAt = frame.at;
    session.endedBy = envelope.id;
    if (isLoss(envelope)) session.lostBy = envelope.id;
    this.#ended.push({ key: keyOf(tenant, id), session, at: frame.at });
  }

  /** Sessions that ended before a time may be opened again (architecture, section 6). */
  forget(before: number): void {
    for (let oldest = this.#ended.peek(); oldest; oldest = this.#ended.peek()) {
      if (oldest.at >= before) return;
      this.#ended.shift();
      if (this.#sessions.get(oldest.key) === oldest.session) this.#sessions.delete(oldest.key);
    }
  }

  #get(tenant: string, id: string): Session | undefined {
    return this.#sessions.get(keyOf(tenant, id));
  }
}

function open(id: string, envelope: Envelope): Session {
  const stated = payloadField(envelope, "capabilities");
  const capabilities = isObject(stated) ? stated : {};
  return {
    id,
    initiator: envelope.source,
    state: "opened",
    wanted: texts(capabilities.profiles),
    required: texts(capabilities.required_profiles),
    profiles: [],
    silentFrom: undefined,
    endedAt: undefined,
    endedBy: undefined,
    lostBy: undefined,
  };
}

/** Its initiator was not heard any more. */
function isLoss(envelope: Envelope): boolean {
  const error = payloadField(envelope, "error");
  return envelope.type === "session.error" && isObject(error) && error.code === "session_timeout";
}

/** Its initiator speaks for a session, services do, and an echo is let through. */
function isOwn({ initiator }: Session, source: string): boolean {
  return source === initiator || isService(source) || isHarness(source);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;
