/** The bucket `HV_LEASES`: a key-value bucket of NATS whose entries live for a fixed time. */
import { HarmovelaError } from "@harmovela/failure";
import { jetstream } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import {
  LEASE_BUCKET,
  type LeaseEntry,
  type LeaseStore,
  leaseTimeMismatch,
} from "../lease-keeper.ts";
import { toJetStreamFailure } from "./api.ts";

/** The client lets an empty token pass, which no stream listens to. */
const KEY = /^[A-Za-z0-9_=/-]+(?:\.[A-Za-z0-9_=/-]+)*$/;

export interface LeaseBucketOptions {
  ttlMs: number;
  /** Of the bucket, if this creates it. */
  replicas: number;
  /** Of each request. */
  timeoutMs: number;
}

export class LeaseBucket implements LeaseStore {
  readonly #kv: KV;
  readonly #timeoutMs: number;

  private constructor(kv: KV, timeoutMs: number) {
    this.#kv = kv;
    this.#timeoutMs = timeoutMs;
  }

  /** Creates the bucket or takes the one there is; `stream_mismatch` when its entries live for another time. */
  static async open(nats: NatsConnection, options: LeaseBucketOptions): Promise<LeaseBucket> {
    const kv = await openBucket(nats, options);
    // A bucket that is there is taken as it is, whatever was asked for.
    const { ttl } = await typed(() => kv.status());
    if (ttl !== options.ttlMs) throw leaseTimeMismatch(ttl, options.ttlMs);
    return new LeaseBucket(kv, options.timeoutMs);
  }

  /** Writes if the key is at `revision` (0: there is none); the new revision. Throws `append_conflict`. */
  async put(key: string, value: string, revision: number): Promise<number> {
    assertKey(key);
    // Not the client's `create`, which takes a key that was given up without telling its revision.
    return typed(() =>
      this.#kv.put(key, value, { previousSeq: revision, timeout: this.#timeoutMs }),
    );
  }

  /** Marks it as given up if it is at `revision`. */
  async giveUp(key: string, revision: number): Promise<void> {
    assertKey(key);
    // For the client, revision 0 would mean: whoever holds it.
    if (revision < 1) throw new HarmovelaError("invalid_argument", "only what is held is given up");
    await typed(() => this.#kv.delete(key, { previousSeq: revision }));
  }

  /** Undefined when there is no such key, or no longer. */
  async last(key: string): Promise<LeaseEntry | undefined> {
    assertKey(key);
    const entry = await typed(() => this.#kv.get(key));
    return entry === null ? undefined : { revision: entry.revision, value: entry.string() };
  }
}

async function openBucket(nats: NatsConnection, options: LeaseBucketOptions): Promise<KV> {
  const { ttlMs, replicas, timeoutMs } = options;
  const kvm = new Kvm(jetstream(nats, { checkAPI: false, timeout: timeoutMs }));
  const create = (): Promise<KV> =>
    // Read through the leader: a stale read could make two holders believe in themselves for longer.
    typed(() => kvm.create(LEASE_BUCKET, { ttl: ttlMs, replicas, allow_direct: false }));
  try {
    return await create();
  } catch (error) {
    // Between the client's look and its request somebody created it otherwise: now it is there to be taken.
    if (apiCodeOf(error) !== API_ERROR.streamNameInUse) throw error;
    return create();
  }
}

async function typed<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (caught) {
    throw toJetStreamFailure(caught);
  }
}

function assertKey(key: string): void {
  if (!KEY.test(key)) throw new HarmovelaError("invalid_argument", "that is no key for a lease");
}
