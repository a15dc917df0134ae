/**
 * What the services need of a bus, and no more. Two adapters: JetStream (`connectBus`) and memory
 * (`MemoryBus`, for the simulation); one contract suite holds them to each other.
 */
import type { Instant } from "@harmovela/envelope";
import type { HarmovelaError } from "@harmovela/failure";

/** Case-sensitive header names, one value each. */
export type Headers = Readonly<Record<string, string>>;

export interface StoredMessage {
  readonly seq: number;
  /** Store time on the broker, whole milliseconds. */
  readonly time: Instant;
  readonly subject: string;
  readonly data: Uint8Array;
  /** The header's value, "" when absent. */
  header(name: string): string;
}

export interface StreamSpec {
  name: string;
  subjects: string[];
  /** 0: no limit. */
  maxAgeMs: number;
  /** -1: no limit. Left out: no limit at first, and of a stream that is there whatever it was given. */
  maxBytes?: number;
  /** What happens when there is no room: "new" messages are refused (default), or the "old" ones go. */
  discard?: "new" | "old";
  /** Nobody can take messages out before their time, not by a purge either. Default false: purging trims. */
  denyPurge?: boolean;
  /** Largest message with headers, bytes. */
  maxMessageBytes: number;
  replicas: number;
  /** What observers see: stored messages go out again under another subject, in order, after the store. */
  republish?: { src: string; dest: string };
}

export interface StreamState {
  name: string;
  firstSeq: number;
  /** 0 when nothing was ever stored. */
  lastSeq: number;
  messages: number;
  bytes: number;
  /** -1: no limit. */
  maxBytes: number;
  /** Identity of this incarnation of the stream: its creation time, RFC 3339. */
  created: string;
}

/** An ordered read without gaps and without duplicates, from a position on, until closed. */
export interface Reader {
  /** All that has arrived, in order, at most `max`. Never waits. */
  take(max: number): StoredMessage[];
  /** Sequence of the last message taken (at first: the `after` it was opened with). */
  readonly position: number;
  /** Messages that have arrived and are not taken. */
  readonly buffered: number;
  close(): Promise<void>;
}

export interface ReaderOptions {
  /** Exclusive start; 0 reads from the first message there is. */
  after: number;
  /** Filter within the stream; default everything. */
  filter?: string;
  /** Called (synchronously from the bus, never from within `take`) when messages arrived. */
  onReady: () => void;
  /** Read-ahead bound, messages. Default 1,024. */
  maxBuffered?: number;
}

/**
 * Why an append did not succeed. "conflict": the stream is not where the chain expected it.
 * "unknown": no answer; it may or may not be stored. "refused": the server answered with another
 * error (full, too large, not permitted) and did not store it.
 */
export interface AppendFailure {
  reason: "conflict" | "unknown" | "refused";
  /** The sequence that the first failed append should have got. */
  seq: number;
  /** Server's API error code, 0 when there was none. */
  apiCode: number;
  message: string;
}

/**
 * A chain of appends to one stream: each carries `Nats-Expected-Last-Sequence`, hundreds are in
 * flight. After the first failure the appender is dead: nothing more is published and nothing more
 * is reported as acknowledged; whoever owns it reads the log to learn what was stored.
 */
export interface Appender {
  /** Publishes in this loop turn; returns the sequence that the message gets. Throws when dead or full. */
  append(subject: string, headers: Headers, data: Uint8Array): number;
  /** Sequence of the newest append, acknowledged or not. */
  readonly last: number;
  /** All appends up to here are stored. */
  readonly acked: number;
  readonly inFlight: number;
  readonly isDead: boolean;
  close(): Promise<void>;
}

export interface AppenderOptions {
  stream: string;
  /** The stream's last sequence as the caller knows it. */
  last: number;
  /** `append` throws beyond it. Default 512. */
  maxInFlight?: number;
  /** No answer for so long is a failure "unknown". Default 5,000. */
  ackTimeoutMs?: number;
  /** The contiguous acknowledged prefix has grown. */
  onAcked: (acked: number) => void;
  /** Called once. */
  onFailure: (failure: AppendFailure) => void;
}

export interface Lease {
  readonly isHeld: boolean;
  /** Gives it up at once so that a standby need not wait for the end of its time. */
  close(): Promise<void>;
}

export interface LeaseOptions {
  key: string;
  holder: string;
  /** A holder that does not renew (at a third of it) loses it after this long. */
  ttlMs: number;
  /** Of the bucket, if this creates it. Default 1. */
  replicas?: number;
  /** May come again after `onLost`: a lease is tried for until it is closed. */
  onAcquired: () => void;
  onLost: () => void;
  /** It can never be taken (its bucket has another time to live); without it the error is uncaught. */
  onError?: (error: HarmovelaError) => void;
}

/** What is known of a blob without reading it. */
export interface BlobInfo {
  name: string;
  bytes: number;
  notes: Readonly<Record<string, string>>;
}

/** A blob as a walk through a bucket finds it. */
export interface StoredBlob extends BlobInfo {
  /** Store time on the broker. */
  at: Instant;
}

/** A part of a bucket, in the order in which its blobs were stored. */
export interface BlobPage {
  blobs: StoredBlob[];
  /** Where the next page begins; absent on the last one. */
  next?: number;
}

/** Which bucket, and what it is when it is made. */
export interface BlobsOptions {
  /** Copies. */
  replicas: number;
  /** Default: the bucket of snapshots. */
  bucket?: string;
  /** Room for all blobs together; the bucket that is there is set to it. Default: no limit, or what it has. */
  maxBytes?: number;
  /** false: a bucket that is not there is not made, and every call throws `no_service`. Default true. */
  mayCreate?: boolean;
}

/** Named blobs: snapshots, checkpoints. Every call throws a typed error when the bus does not answer. */
export interface Blobs {
  /** Replaces one of that name. Resolves when it is stored. Throws `store_full` when there is no room. */
  put(name: string, data: Uint8Array, notes?: Record<string, string>): Promise<void>;
  /** Undefined when there is none; throws when what is stored is not what was put. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** By name. */
  list(): Promise<BlobInfo[]>;
  /** At most `limit` blobs from a place on; 0 is the beginning. For buckets that are too large to list. */
  page(from: number, limit: number): Promise<BlobPage>;
  /** Nothing happens when there is none. It leaves nothing behind, and needs no room. */
  remove(name: string): Promise<void>;
  /**
   * Removes what was written of blobs whose writer died before they were whole, if that was so long ago,
   * milliseconds. The result: of how many.
   */
  removeIncomplete(olderThanMs: number): Promise<number>;
}

/** A message of plain NATS, with no promise. */
export interface CoreMessage {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  header(name: string): string;
}

export interface Subscription {
  close(): void;
}

export interface Bus {
  /** Creates the stream or checks that the one there is as asked for; throws a typed error naming each difference. */
  provision(spec: StreamSpec): Promise<StreamState>;
  /** Undefined when there is no such stream. */
  streamState(stream: string): Promise<StreamState | undefined>;
  /**
   * Read through the stream's leader; undefined when there is no message at that position. For this and the
   * next two: `provision` has answered for the stream, or `streamState` has counted messages in it. A server
   * of 2.9 ends with a fault of its own when it is asked for a message of a stream that is just being made.
   */
  read(stream: string, seq: number): Promise<StoredMessage | undefined>;
  /** The newest message of one subject, without wildcards; undefined when there is none. */
  lastOn(stream: string, subject: string): Promise<StoredMessage | undefined>;
  /**
   * The first message above a position whose subject lies in a filter, read through the stream's leader: when
   * it is undefined, nothing of the kind was stored up to where the stream ended when it was asked.
   */
  next(stream: string, after: number, filter: string): Promise<StoredMessage | undefined>;
  openReader(stream: string, options: ReaderOptions): Reader;
  openAppender(options: AppenderOptions): Appender;
  openLease(options: LeaseOptions): Lease;
  /** A bucket, by default that of snapshots; it is made at its first use. */
  openBlobs(options: BlobsOptions): Blobs;
  /** Removes every message of a stream below a sequence, which must be stored; the others keep theirs. */
  trim(stream: string, firstSeq: number): Promise<void>;
  /**
   * Publishes into whatever stream listens and waits for its answer. Throws a typed error, `append_conflict`
   * when the header `Nats-Expected-Last-Subject-Sequence` names another message than the subject's newest.
   */
  store(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs?: number,
  ): Promise<{ stream: string; seq: number }>;
  /** Plain publish: may be lost. */
  publish(subject: string, headers: Headers, data: Uint8Array): void;
  /** One plain question, the first answer. Throws a typed error when nobody is there or nobody answers in time. */
  request(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs: number,
  ): Promise<CoreMessage>;
  /** Plain subscription; with `queue` one member of the group gets each message. */
  subscribe(
    subject: string,
    onMessage: (message: CoreMessage) => void,
    queue?: string,
  ): Subscription;
  /** A fresh reply subject under this connection's own inbox prefix. */
  newInbox(): string;
  /** Resolves when what was published and subscribed so far has reached the server. */
  flush(): Promise<void>;
  /** Whether the connection is up now. */
  readonly isConnected: boolean;
  close(): Promise<void>;
}
