import type { Bus, Clock } from "@harmovela/bus";
import type {
  Decider,
  Domain,
  Envelope,
  Instant,
  SignatureFacts,
  TokenIssue,
} from "@harmovela/envelope";
import type { ErrorPayload, JsonObject, JsonValue } from "@harmovela/failure";
import type { Logger } from "pino";
import type { AgentKeys } from "./agent-keys.ts";
import type { Packing } from "./snapshot/format.ts";
import type { SourceLimits } from "./source-rate.ts";
import type { TokenKeys } from "./tokens.ts";

/** What a read may use besides the state. */
export interface ReadContext {
  tenant: string;
  /** Who asks, as the subject says. */
  source: string;
  now: Instant;
  /** The envelope at a position of the own log, or of one that is observed; undefined when there is none. */
  event(seq: number, domain?: Domain): Promise<Envelope | undefined>;
  /** Who signed an envelope; undefined when it carries no signature, or when there is no key registry. */
  signature(envelope: Envelope): Promise<SignatureFacts | undefined>;
}

/** Answers a question about the state; throws a HarmovelaError for a bad question. */
export type ReadHandler<State> = (
  state: State,
  params: JsonObject,
  context: ReadContext,
) => JsonValue | Promise<JsonValue>;

/**
 * A question that changes something beside the state, asked of the leader alone; throws a HarmovelaError
 * for what it refuses. What it rests on it looks up itself (`CompanionContext.leading`).
 */
export type Act = (
  who: { tenant: string; source: string },
  params: JsonObject,
) => Promise<JsonValue>;

/** Decides about a token that somebody asks for (spec 7); pure. */
export type TokenIssuer<State> = (
  state: State,
  request: { tenant: string; asker: string; params: JsonObject; now: Instant },
) => { issue: TokenIssue } | { refused: ErrorPayload };

export interface HostOptions<State> {
  domain: Domain;
  /** `service:<name>`, the source of what the service says. */
  service: string;
  version: string;
  /** Names this process among its replicas. */
  instance: string;
  decider: Decider<State>;
  /** Every setting that `evolve` or `owed` reads; recorded in each `epoch` entry. */
  settings: JsonObject;
  /** Domains whose logs the decider folds too. */
  observes: readonly Domain[];
  reads: Readonly<Record<string, ReadHandler<State>>>;
  /** By verb; the leader alone answers. */
  acts?: Readonly<Record<string, Act>>;
  /** The read `token`, which the leader alone answers; needs `tokens`. */
  issueToken?: TokenIssuer<State>;
  /** Keys for handoff tokens; without them every token is opaque. */
  tokens?: TokenKeys;
  /** Keys of agents; without them no signature can be verified. */
  agentKeys?: AgentKeys;
  /** Writes to its own log, control subjects and intakes; answers nothing (architecture, section 3). */
  writer: Bus;
  /** Serves reads and verdicts; publishes to inboxes only. */
  answerer: Bus;
  /**
   * With the writer's rights, for what is read and stored on behalf of agents: so it holds up neither appends
   * nor the lease. Default the writer.
   */
  carrier?: Bus;
  clock: Clock;
  logger: Logger;
  replicas: number;
  /** Where a reply may go: `_INBOX.` with authentication off, else `_INBOX.<tenant>.<source>.`. */
  replyPrefix(tenant: string, source: string): string;
  /** Further replies to reads that are answered: those that the server has moved at the border of accounts. Default none. */
  borderReplyPrefix?: string;
  /** What each source may send; without it as much as it likes. */
  sourceLimits?: SourceLimits;
  /** How long the log keeps its entries at least, milliseconds; they go when no snapshot needs them either. */
  retentionMs: number;
  /** Entries after which another snapshot is taken. Default 50,000. */
  snapshotEntries?: number;
  /** How often a decider that asks for it is told of its observed logs, milliseconds. Default 60,000. */
  observedEveryMs?: number;
  /** Default: in a thread. */
  packing?: Packing;
  /** A leader that stops renewing is replaced after this long. */
  leaseTtlMs: number;
}
