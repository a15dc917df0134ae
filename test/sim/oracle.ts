/**
 * Reads the log as it is stored, entry by entry: holds it to every rule, folds it as a restart would,
 * and remembers what observers must have seen. Any difference is thrown at the entry that shows it.
 */
import { intakeStream, logStream, type StoredMessage } from "@harmovela/bus";
import { type Checker, createChecker, formatRecord, recordOf } from "@harmovela/check";
import {
  createTaskDecider,
  type TaskSettings,
  type TaskState,
} from "@harmovela/delegation-coordinator";
import type { Decider, Envelope, EventEntry, Instant, LogEntry, Owed } from "@harmovela/envelope";
import { Fold } from "@harmovela/host";
import { IntakeBook } from "./intake-book.ts";
import type { Interruptions } from "./interruptions.ts";
import { SessionBook } from "./session-book.ts";
import { StopBook } from "./stop-book.ts";

export const STREAM = logStream("tasks");
export const INTAKE = intakeStream("tasks");

/** Where somebody appends who may but is no leader. */
export const INTRUDER = "hv.acme.log.tasks.agent:x.-.task.completed";

export interface Shown {
  subject: string;
  text: string;
}

const decoder = new TextDecoder();

export class Oracle {
  readonly checker: Checker = createChecker({ domain: "tasks", stream: STREAM, settled: true });
  readonly fold: Fold<TaskState>;
  readonly intake = new IntakeBook();
  readonly sessions = new SessionBook();
  /** What a plain observer must have seen under `ev`, in order. */
  readonly shown: Shown[] = [];
  /** The whole log, one line for each stored message. */
  readonly lines: string[] = [];
  /** The whole log, as it is stored. */
  readonly messages: StoredMessage[] = [];
  readonly #manager: string;
  readonly #events = new Map<string, Envelope[]>();
  readonly #entries = new Map<number, LogEntry>();
  readonly #issued = new Set<string>();
  readonly #submitted = new Set<string>();
  readonly decider: Decider<TaskState>;
  /** Who wrote the newest `epoch`. */
  leader = "";
  /** Ids of tasks that came back after they had been forgotten. */
  reused = 0;
  delegationsHandedOff = 0;
  /** Tasks that failed because the session was lost that had them. */
  tasksOrphaned = 0;
  /** Entries that the service of interruptions has asked for. */
  endsAskedFor = 0;
  /** Requests whose window ended without a word of their target. */
  windowsEnded = 0;

  /** The log that the coordinator observes, where something is written to it. */
  readonly interruptions: Interruptions | undefined;
  readonly stops = new StopBook();

  constructor(settings: TaskSettings, interruptions?: Interruptions) {
    this.interruptions = interruptions;
    this.#manager = settings.interruptionManager;
    this.decider = createTaskDecider(settings);
    this.fold = new Fold<TaskState>(this.decider);
  }

  push(message: StoredMessage): void {
    const record = recordOf(message);
    this.lines.push(formatRecord(record));
    this.messages.push(message);
    // One log alone does not say why a task stands still, or who may end it then.
    const findings = this.interruptions === undefined ? this.checker.push(record) : [];
    if (findings.length > 0) throw new Error(`the log breaks a rule: ${JSON.stringify(findings)}`);
    const tokens = message.subject.split(".");
    if (tokens[2] === "log") {
      tokens[2] = "ev";
      this.shown.push({ subject: tokens.join("."), text: decoder.decode(message.data) });
    }
    const entry = this.fold.look(message)?.entry();
    if (entry !== undefined) {
      observeUpTo(this.fold, this.interruptions, entry, (seen) => this.stops.see(seen));
      this.stops.push(entry);
    }
    if (entry !== undefined) this.intake.judge(entry, (now) => this.#nextDue(now));
    this.fold.read(message);
    if (entry !== undefined) this.#remember(entry);
    else if (message.subject !== INTRUDER) {
      throw new Error(`stored under a leadership that was over: ${this.lines.at(-1)}`);
    }
  }

  /** What the service owes next at an instant. */
  owed(now: Instant): Owed | undefined {
    return this.decider.owed(this.fold.state, now, { requests: new Set() });
  }

  #nextDue(now: Instant): Instant | undefined {
    const owed = this.owed(now);
    return owed !== undefined && "urgency" in owed && owed.urgency === "timer"
      ? owed.due
      : undefined;
  }

  #remember(entry: LogEntry): void {
    this.#entries.set(entry.seq, entry);
    if (entry.kind === "token_issued") this.#issued.add(keyOf(entry.tenant, entry.body.jti));
    if (entry.kind === "epoch") this.leader = String(entry.body.instance);
    const isCaused = entry.kind === "event" || entry.kind === "begun";
    this.sessions.push(entry, isCaused ? this.intake.signOf(entry) : undefined);
    if (entry.kind !== "event") return;
    this.#count(entry);
    const { type, task_id: task } = entry.envelope;
    if (type === "task.submitted" && task !== undefined) {
      const name = keyOf(entry.tenant, task);
      if (this.#submitted.has(name)) this.reused += 1;
      this.#submitted.add(name);
    }
    const key = keyOf(entry.tenant, entry.envelope.id);
    const known = this.#events.get(key);
    if (known === undefined) this.#events.set(key, [entry.envelope]);
    else known.push(entry.envelope);
  }

  #count({ envelope: { type, payload, source }, cause }: EventEntry): void {
    if (source === this.#manager && type.startsWith("task.")) this.endsAskedFor += 1;
    if (type === "delegation.handoff.completed") this.delegationsHandedOff += 1;
    if (!("owed" in cause)) return;
    const { error, reason } = payload as { error?: { code?: string }; reason?: string };
    if (type === "task.failed" && error?.code === "session_timeout") this.tasksOrphaned += 1;
    if (reason === "negotiation_timeout") this.windowsEnded += 1;
  }

  get lastSeq(): number {
    return this.fold.position;
  }

  entry(seq: number): LogEntry | undefined {
    return this.#entries.get(seq);
  }

  /** How often the log holds an event with this id. */
  events(tenant: string, id: string): Envelope[] {
    return this.#events.get(keyOf(tenant, id)) ?? [];
  }

  /** Whether the log holds that a token was given out. */
  isIssued(tenant: string, jti: string): boolean {
    return this.#issued.has(keyOf(tenant, jti));
  }

  /** Whether a subtree is being ended. */
  get isInCascade(): boolean {
    for (const { plans } of this.fold.state.tenants.values()) if (plans.size > 0) return true;
    return false;
  }
}

/** Folds what an entry's writer had seen of the observed log. */
export function observeUpTo(
  fold: Fold<TaskState>,
  interruptions: Interruptions | undefined,
  { seen }: LogEntry,
  onSeen: (entry: LogEntry) => void = () => {},
): void {
  const before = fold.observedUpTo("interruptions");
  const upTo = seen.interruptions ?? 0;
  if (interruptions === undefined || upTo <= before.position) return;
  let cursor = before;
  for (const entry of interruptions.between(before.position, upTo)) {
    fold.observe("interruptions", entry);
    onSeen(entry);
    cursor = { position: entry.seq, epoch: 1, prev: entry.seq, intake: entry.seq };
  }
  fold.sawUpTo("interruptions", cursor);
}

const keyOf = (tenant: string, id: string): string => `${tenant}\u0000${id}`;

/** The position that a cursor of this log names; 0 when it names none. */
export function positionOf(cursor: unknown): number {
  const match = typeof cursor === "string" ? /^(.*):(\d+)$/.exec(cursor) : null;
  return match?.[1] === STREAM ? Number(match[2]) : 0;
}
