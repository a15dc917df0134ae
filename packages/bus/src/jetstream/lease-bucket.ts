/** The bucket `HV_LEASES`: a key-value bucket of NATS whose entries live for a fixed time. */
import { HarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import { API_ERROR, apiCodeOf, readPubAck } from "../api-error.ts";
import {
  LEASE_BUCKET,
  type LeaseEntry,
  type LeaseStore,
  leaseTimeMismatch,
} from "../lease-keeper.ts";
import type { Headers } from "../port.ts";
import { askApi } from "./api.ts";
import { toBusError } from "./errors.ts";
import { toWireHeaders } from "./wire-headers.ts";

const STREAM = `KV_${LEASE_BUCKET}`;
const NANOS_PER_MS = 1_000_000;
const KEY = /^[A-Za-z0-9_=/-]+(?:\.[A-Za-z0-9_=/-]+)*$/;

export class LeaseBucket implements LeaseStore {
  readonly #nats: NatsConnection;
  readonly #timeoutMs: number;

  private constructor(nats: NatsConnection, timeoutMs: number) {
    this.#nats = nats;
    this.#timeoutMs = timeoutMs;
  }

  /** Creates the bucket or takes the one there is; `stream_mismatch` when its entries live for another time. */
  static async open(
    nats: NatsConnection,
    options: { ttlMs: number; replicas: number; timeoutMs: number },
  ): Promise<LeaseBucket> {
    const config = {
      name: STREAM,
      subjects: [`$KV.${LEASE_BUCKET}.>`],
      retention: "limits",
      storage: "file",
      discard: "new",
      max_msgs_per_subject: 1,
      max_age: options.ttlMs * NANOS_PER_MS,
      duplicate_window: Math.min(options.ttlMs, 100) * NANOS_PER_MS,
      num_replicas: options.replicas,
      allow_rollup_hdrs: true,
      deny_delete: true,
      // Read through the leader: a stale read could make two holders believe in themselves for longer.
      allow_direct: false,
    };
    let isMs: number;
    try {
      const made = await askApi<BucketInfo>(nats, `STREAM.CREATE.${STREAM}`, config);
      isMs = made.config.max_age / NANOS_PER_MS;
    } catch (error) {
      if (apiCodeOf(error) !== API_ERROR.streamNameInUse) throw error;
      const there = await askApi<BucketInfo>(nats, `STREAM.INFO.${STREAM}`);
      isMs = there.config.max_age / NANOS_PER_MS;
    }
    if (isMs !== options.ttlMs) {
      throw leaseTimeMismatch(isMs, options.ttlMs);
    }
    return new LeaseBucket(nats, options.timeoutMs);
  }

  /** Writes if the key is at `revision` (0: there is none); the new revision. Throws `append_conflict`. */
  put(key: string, value: string, revision: number): Promise<number> {
    return this.#write(key, { [EXPECTED]: String(revision) }, value);
  }

  /** Marks it as given up if it is at `revision`. */
  async giveUp(key: string, revision: number): Promise<void> {
    await this.#write(key, { "KV-Operation": "DEL", [EXPECTED]: String(revision) }, "");
  }

  /** Undefined when there is no such key, or no longer. */
  async last(key: string): Promise<LeaseEntry | undefined> {
    try {
      const { message } = await askApi<{ message: { seq: number; data?: string } }>(
        this.#nats,
        `STREAM.MSG.GET.${STREAM}`,
        { last_by_subj: subjectOf(key) },
        this.#timeoutMs,
      );
      return { revision: message.seq, value: Buffer.from(message.data ?? "", "base64").toString() };
    } catch (error) {
      if (apiCodeOf(error) === API_ERROR.noMessageFound) return undefined;
      throw error;
    }
  }

  async #write(key: string, headers: Headers, value: string): Promise<number> {
    let answer: Uint8Array;
    try {
      const wire = toWireHeaders(headers);
      const reply = await this.#nats.request(subjectOf(key), value, {
        timeout: this.#timeoutMs,
        ...(wire === undefined ? {} : { headers: wire }),
      });
      answer = reply.data;
    } catch (caught) {
      throw toBusError(caught);
    }
    return readPubAck(answer).seq;
  }
}

const EXPECTED = "Nats-Expected-Last-Subject-Sequence";

interface BucketInfo {
  config: { max_age: number };
}

function subjectOf(key: string): string {
  if (!KEY.test(key)) throw new HarmovelaError("invalid_argument", "that is no key for a lease");
  return `$KV.${LEASE_BUCKET}.${key}`;
}
