/**
 * Lines that the specification calls illegal, for strict runs: what the manifest says
 * (`illegal_lines`), else what the checker says, which knows nothing of services: a line is illegal
 * when a log that holds what was legal before it, and this line, breaks a rule.
 *
 * I1 Doubt favours the line: no timer fires, and whatever answers a request has answered it.
 * I2 What follows at once from a legal line is in the log before the next one.
 */
import type { RuleId } from "@harmovela/check";
import {
  checkEnvelope,
  type Domain,
  deriveId,
  domainOf,
  type Envelope,
  isDerivedId,
  parseJson,
  sameJson,
} from "@harmovela/envelope";
import { FixtureLog, owedBy } from "./fixture-log.ts";
import { Endings, openSession, taskOf } from "./follow-ups.ts";
import type { Fixture } from "./manifest.ts";
import { REQUEST_MS_MAX, type SourceLine, tenantOf } from "./run-file.ts";
import { isTreeRequest, Stopping } from "./stopping.ts";

/** Numbers from 1. */
export function illegalLinesOf(
  { illegalLines }: Pick<Fixture, "illegalLines">,
  lines: readonly SourceLine[],
): readonly number[] {
  return illegalLines ?? deriveIllegalLines(lines, Date.now());
}

/** What the checker finds in lines that are all said at one time. */
export function deriveIllegalLines(lines: readonly SourceLine[], at: number): number[] {
  const judge = new LineJudge(tenantOf(lines), at);
  const illegal = new Set<number>();
  lines.forEach((line, index) => {
    if (!judge.isLegal(line, index + 1)) illegal.add(index + 1);
  });
  for (const number of judge.unanswered()) illegal.add(number);
  return [...illegal].sort((a, b) => a - b);
}

/** How a task with live descendants may be ended: by a plan (spec 5.5). */
const BY_PLAN: ReadonlySet<string> = new Set(["task.cancelled", "task.failed", "task.timed_out"]);

class LineJudge {
  readonly #tenant: string;
  readonly #at: number;
  readonly #logs = new Map<Domain, FixtureLog>();
  /** Legal envelopes by tenant and id. */
  readonly #said = new Map<string, Envelope>();
  /** Correlations of commands and queries that somebody answered, an echo included. */
  readonly #answered = new Set<string>();
  readonly #endings = new Endings();
  /** Lines by the position of their entry in the log of tasks. */
  readonly #lineAt = new Map<number, { number: number; envelope: Envelope }>();

  readonly #stopping: Stopping;

  constructor(tenant: string, at: number) {
    this.#tenant = tenant;
    this.#at = at;
    const tasks = this.#logOf("tasks");
    const stops = this.#logOf("interruptions");
    tasks.observe(stops);
    stops.observe(tasks);
    this.#logOf("provenance").observe(tasks, this.#logOf("beliefs"), stops);
    const ask = (request: Envelope): void => {
      if (this.#accept(tasks, tasks.nextLine(), request)) this.#endings.learn(request);
    };
    const taskIds = (): string[] => this.#endings.taskIds;
    this.#stopping = new Stopping({ tasks, stops, taskIds, ask });
  }

  isLegal({ bytes }: SourceLine, number: number): boolean {
    const json = parseJson(bytes);
    const checked = json.ok ? checkEnvelope(json.value) : json;
    if (!checked.ok) return false;
    const sent = checked.value;
    const before = this.#said.get(sent.id);
    if (before !== undefined && isSameContent(before, sent)) return true;
    const log = this.#logOf(domainOf(sent.type));
    const cause = log.nextLine();
    const envelope = withTask(sent, cause, this.#at);
    if (!this.#accept(log, cause, envelope)) {
      this.#refuse(log, cause, sent, before === undefined && !isDerivedId(sent.id));
      return false;
    }
    this.#said.set(sent.id, sent);
    if (log.domain === "tasks") this.#lineAt.set(log.last, { number, envelope });
    this.#follow(log, envelope);
    return true;
  }

  /** `takesId`: from here on the id of the line is taken. */
  #refuse(log: FixtureLog, cause: string, sent: Envelope, takesId: boolean): void {
    const isMissing =
      sent.type === "interruption.resumed" &&
      isOnly(log.add({ cause, envelope: sent }), "checkpoint-unknown");
    if (takesId) log.refuse(sent, cause, isMissing ? "checkpoint_missing" : "protocol_error");
    if (isMissing) this.#stopping.failMissing(sent, log.idOf(cause, "rejected"));
  }

  /** Requests that nobody answers and whose target never speaks (spec 5.9). */
  unanswered(): number[] {
    const open = this.#logOf("tasks").openRequests(REQUEST_MS_MAX);
    const lines = open.flatMap((position) => this.#lineAt.get(position) ?? []);
    const isOpen = ({ correlation_id: name = "" }: Envelope): boolean => !this.#answered.has(name);
    return lines.flatMap(({ number, envelope }) => (isOpen(envelope) ? [number] : []));
  }

  #logOf(domain: Domain): FixtureLog {
    const log = this.#logs.get(domain) ?? new FixtureLog(domain, this.#tenant, this.#at);
    this.#logs.set(domain, log);
    return log;
  }

  /** As an event, as the beginning of a plan that ends with it, or as what a cascade has said before. */
  #accept(log: FixtureLog, cause: string, envelope: Envelope): boolean {
    if (isTreeRequest(envelope)) return this.#stopping.acceptTree(envelope, cause);
    const broken = log.add({ cause, envelope });
    if (broken.length === 0) return true;
    if (isOnly(broken, "task-terminal")) return this.#endings.isRepeated(envelope);
    if (!BY_PLAN.has(envelope.type) || !isOnly(broken, "task-live-descendants")) return false;
    if (log.add({ cause, begun: envelope }).length > 0) return false;
    this.#endings.cancelSubtree(log, envelope);
    return log.add({ cause: owedBy(envelope.id), envelope }).length === 0;
  }

  /** I2. */
  #follow(log: FixtureLog, envelope: Envelope): void {
    const { type } = envelope;
    this.#endings.learn(envelope);
    this.#stopping.follow(envelope);
    if (/^(?:command|query)\.(?!requested$)/.test(type)) {
      this.#answered.add(envelope.correlation_id ?? "");
    } else if (type === "task.cancel.requested") this.#endings.cancelAsAsked(log, envelope);
    else if (type === "session.opened") openSession(log, envelope);
  }
}

function isOnly(broken: readonly RuleId[], rule: RuleId): boolean {
  return broken.every((found) => found === rule);
}

/** A submission need not name its task: it is given an id (spec 5.4). */
function withTask(envelope: Envelope, cause: string, at: number): Envelope {
  if (envelope.type !== "task.submitted" || taskOf(envelope) !== undefined) return envelope;
  return { ...envelope, task_id: deriveId("", cause, "task", at) };
}

/** When it was sent and what a log stamps on it aside (spec 9.1: the same id again is no new event). */
function isSameContent(one: Envelope, other: Envelope): boolean {
  return sameJson(contentOf(one), contentOf(other));
}

function contentOf({ created_at: _at, delivery, ...content }: Envelope): object {
  const { cursor: _cursor, sequence: _sequence, ...asked } = delivery ?? {};
  return Object.keys(asked).length === 0 ? content : { ...content, delivery: asked };
}
