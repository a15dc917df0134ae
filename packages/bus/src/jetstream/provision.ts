/**
 * Streams as asked for, or a refusal that names each difference. An old server drops what it does not
 * know without a word, so what it answers is compared with what was asked.
 */
import { HarmovelaError } from "@harmovela/failure";
import {
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { type NatsConnection, nanos } from "@nats-io/nats-core";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import type { StreamSpec, StreamState } from "../port.ts";
import { askStreams } from "./api.ts";

/** The shortest the server allows: nobody here relies on message ids, and a wide one lets ids collide. */
const DUPLICATE_WINDOW_MS = 100;

/** What is asked for; each field is compared with what the server answers. */
type AskedConfig = Partial<StreamConfig> & { name: string };

/** What the bus knows of a stream beyond what the port says. */
export interface KnownStream {
  state: StreamState;
  replicas: number;
}

/** Creates the stream or checks the one there is; throws `stream_mismatch` naming each difference. */
export async function provisionStream(
  nats: NatsConnection,
  spec: StreamSpec,
): Promise<KnownStream> {
  const asked = streamConfig(spec);
  let info: StreamInfo;
  try {
    // A copy, since the client writes into what it is given.
    info = await askStreams(nats, (streams) => streams.add({ max_bytes: -1, ...asked }));
  } catch (error) {
    if (apiCodeOf(error) !== API_ERROR.streamNameInUse) throw error;
    info = await askStreams(nats, (streams) => streams.info(spec.name));
  }
  const differences = differencesOf(asked, info.config);
  if (differences.length > 0) {
    throw new HarmovelaError(
      "stream_mismatch",
      `stream ${spec.name} is not as asked for: ${differences.join("; ")}`,
      { details: { stream: spec.name, differences } },
    );
  }
  return toKnown(spec.name, info);
}

/** Undefined when there is no such stream. */
export async function readStreamState(
  nats: NatsConnection,
  stream: string,
): Promise<KnownStream | undefined> {
  try {
    return toKnown(stream, await askStreams(nats, (streams) => streams.info(stream)));
  } catch (error) {
    if (apiCodeOf(error) === API_ERROR.streamNotFound) return undefined;
    throw error;
  }
}

/** What the server is asked for. Everything that could move or rewrite the sequence is off; purge stays, to trim. */
function streamConfig(spec: StreamSpec): AskedConfig {
  return {
    name: spec.name,
    subjects: spec.subjects,
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: spec.discard === "old" ? DiscardPolicy.Old : DiscardPolicy.New,
    num_replicas: spec.replicas,
    max_consumers: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    ...(spec.maxBytes === undefined ? {} : { max_bytes: spec.maxBytes }),
    max_age: nanos(spec.maxAgeMs),
    max_msg_size: spec.maxMessageBytes,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    no_ack: false,
    sealed: false,
    deny_delete: true,
    deny_purge: spec.denyPurge === true,
    allow_rollup_hdrs: false,
    allow_direct: false,
    mirror_direct: false,
    ...(spec.republish ? { republish: { ...spec.republish } } : {}),
  };
}

/** Options that would let something else than the appender write, remove or hold back messages. */
const MUST_BE_ABSENT = [
  "mirror",
  "sources",
  "subject_transform",
  "allow_msg_ttl",
  "allow_msg_schedules",
  "allow_msg_counter",
  "subject_delete_marker_ttl",
] as const;

function differencesOf(asked: Record<string, unknown>, is: Record<string, unknown>): string[] {
  const differences: string[] = [];
  for (const [field, value] of Object.entries(asked)) {
    if (!isSame(value, is[field])) {
      differences.push(`${field} is ${show(is[field])}, not ${show(value)}`);
    }
  }
  const absent = asked.republish === undefined ? [...MUST_BE_ABSENT, "republish"] : MUST_BE_ABSENT;
  for (const field of absent) {
    if (is[field]) differences.push(`${field} is ${show(is[field])}, not absent`);
  }
  return differences;
}

/** The server leaves out what is false. Objects may carry fields that the server adds (all off). */
function isSame(asked: unknown, is: unknown): boolean {
  if (asked === false) return is === undefined || is === false;
  if (Array.isArray(asked)) {
    return (
      Array.isArray(is) && asked.length === is.length && asked.every((value) => is.includes(value))
    );
  }
  if (typeof asked === "object" && asked !== null) {
    if (typeof is !== "object" || is === null) return false;
    const fields = is as Record<string, unknown>;
    return (
      Object.entries(asked).every(([key, value]) => isSame(value, fields[key])) &&
      Object.entries(fields).every(([key, value]) => key in asked || !value)
    );
  }
  return asked === is;
}

function show(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value);
}

function toKnown(name: string, { state, config, created }: StreamInfo): KnownStream {
  return {
    state: {
      name,
      firstSeq: state.first_seq,
      lastSeq: state.last_seq,
      messages: state.messages,
      bytes: state.bytes,
      maxBytes: config.max_bytes,
      created,
    },
    replicas: config.num_replicas,
  };
}
