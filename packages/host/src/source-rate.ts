/**
 * How much one source may have judged, measured before anything of it is parsed (architecture, section 4).
 *
 * L1 Measured by the time at which the server stored a message: what was sent slowly is not limited because
 *    it is judged late and all at once, and whoever judges again measures the same.
 * L2 What is refused takes nothing of the budget: a flood does not keep its sender out for longer than it lasts.
 */
import type { StoredMessage } from "@harmovela/bus";
import { type Instant, isService } from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { type Refused, senderOf } from "./validate.ts";

/** What each source may send, on average over ten seconds; 0 is no limit. */
export interface SourceLimits {
  messagesPerSecond: number;
  bytesPerSecond: number;
}

/**
 * An agent says a few things a second. A service judges some 15,000, but of the most laborious bodies, which are
 * about 320 KB each, some 15: no single sender takes more than a fifth of that for long.
 */
export const SOURCE_LIMITS: SourceLimits = {
  messagesPerSecond: 2_000,
  bytesPerSecond: 1024 * 1024,
};

/** A quiet source may say so much at once: a plan with thousands of tasks, or what gathered while it was cut off. */
const BURST_SECONDS = 10;
/** Sources remembered at once; the longest silent one is forgotten first and starts with a full burst. */
const SOURCES_MAX = 10_000;

interface Bucket {
  messages: number;
  bytes: number;
  at: Instant;
  /** Something was refused since it was full. */
  isOver: boolean;
}

export class SourceRate {
  readonly #limits: { messages: Budget; bytes: Budget };
  readonly #onLimit: (tenant: string, source: string) => void;
  readonly #buckets = new Map<string, Bucket>();
  #newest = "";

  /** `onLimit` is called when a source is refused for the first time since its budget was full. */
  constructor(limits: SourceLimits, onLimit: (tenant: string, source: string) => void) {
    const { messagesPerSecond, bytesPerSecond } = limits;
    this.#limits = { messages: new Budget(messagesPerSecond), bytes: new Budget(bytesPerSecond) };
    this.#onLimit = onLimit;
  }

  /** Undefined: it may be judged. A refusal can be sent again later, when there is room. */
  refusalOf(message: StoredMessage): Refused | undefined {
    const sender = senderOf(message);
    // The services' own requests follow from what was judged; nobody else can send under such a name.
    if (sender === undefined || isService(sender.source)) return undefined;
    const { tenant, source } = sender;
    const waitMs = this.#take(tenant, source, message);
    if (waitMs === 0) return undefined;
    const details = { reason: "rate_limited", retry_after_ms: waitMs, intake: message.seq };
    const facts = { category: "dependency", stage: "parse" } as const;
    const why = "this source sends more than is judged; nothing of the message was read";
    return {
      kind: "refused",
      error: reject("internal_error", why, details, facts),
      tenant,
      source,
      sent: undefined,
      isOccupying: false,
      isLimited: true,
    };
  }

  get sources(): number {
    return this.#buckets.size;
  }

  /** Takes it from the budget; else after how many milliseconds there is room for it. */
  #take(tenant: string, source: string, { data, time }: StoredMessage): number {
    const { messages, bytes } = this.#limits;
    const bucket = this.#bucketOf(`${tenant}\u0000${source}`, time);
    const waitMs = Math.max(
      messages.waitFor(1, bucket.messages),
      bytes.waitFor(data.length, bucket.bytes),
    );
    if (waitMs > 0) {
      if (!bucket.isOver) this.#onLimit(tenant, source);
      bucket.isOver = true;
      return waitMs;
    }
    bucket.messages -= 1;
    bucket.bytes -= data.length;
    return 0;
  }

  /** With what it has gained since. */
  #bucketOf(key: string, at: Instant): Bucket {
    const { messages, bytes } = this.#limits;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { messages: messages.full, bytes: bytes.full, at, isOver: false };
      this.#remember(key, bucket);
    } else if (key !== this.#newest) this.#remember(key, bucket);
    const ms = at - bucket.at;
    if (ms > 0) {
      bucket.messages = messages.after(ms, bucket.messages);
      bucket.bytes = bytes.after(ms, bucket.bytes);
      bucket.at = at;
      if (bucket.messages >= messages.full && bucket.bytes >= bytes.full) bucket.isOver = false;
    }
    return bucket;
  }

  #remember(key: string, bucket: Bucket): void {
    this.#newest = key;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size <= SOURCES_MAX) return;
    for (const silent of this.#buckets.keys()) {
      this.#buckets.delete(silent);
      break;
    }
  }
}

/** So much a second, saved up for `BURST_SECONDS`; 0 is no limit. */
class Budget {
  readonly #perMs: number;
  readonly full: number;

  constructor(perSecond: number) {
    this.#perMs = perSecond / 1_000;
    this.full = perSecond === 0 ? Number.POSITIVE_INFINITY : perSecond * BURST_SECONDS;
  }

  after(ms: number, left: number): number {
    return Math.min(this.full, left + ms * this.#perMs);
  }

  /** Milliseconds until there is room; what is more than a full budget waits for a full one. */
  waitFor(cost: number, left: number): number {
    const missing = Math.min(cost, this.full) - left;
    return missing <= 0 ? 0 : Math.ceil(missing / this.#perMs);
  }
}
