/** Records of the audit stream, in the order in which they were stored. */
import { AUDIT_STREAM, type Bus, parseAuditSubject, type StoredMessage } from "@harmovela/bus";
import type { AuditRecord } from "@harmovela/host";
import { CommandFailure } from "./command-failure.ts";

/** A record with what its message says of all in it. */
export type AuditLine = AuditRecord & { tenant: string; domain: string };

const TAKEN_MAX = 256;
const STALL_MS_MAX = 10_000;
/** A batch that was stored twice comes again within so many messages. */
const BATCHES_MAX = 1_000;

/**
 * Up to where it ends now, or with `follow` until `stop` is settled. Throws a CommandFailure when there is no
 * such stream, or when it stops coming.
 */
export async function* auditLines(
  bus: Bus,
  { follow, stop }: { follow: boolean; stop: Promise<unknown> },
): AsyncGenerator<AuditLine> {
  const state = await bus.streamState(AUDIT_STREAM);
  if (state === undefined) throw new CommandFailure("that server keeps no audit");
  const last = state.messages === 0 ? 0 : state.lastSeq;
  let isStopped = false;
  let wake: () => void = () => {};
  const reader = bus.openReader(AUDIT_STREAM, { after: 0, onReady: () => wake() });
  stop.then(() => {
    isStopped = true;
    wake();
  }, fail);
  const batches = new Set<string>();
  try {
    while (!isStopped && (follow || reader.position < last)) {
      const messages = reader.take(TAKEN_MAX);
      for (const message of messages) yield* linesOf(message, batches);
      if (messages.length > 0) continue;
      await new Promise<void>((resolve, reject) => {
        const late = new CommandFailure("the audit cannot be read to its end");
        const timer = follow ? undefined : setTimeout(() => reject(late), STALL_MS_MAX);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (reader.buffered > 0 || isStopped) wake();
      });
    }
  } finally {
    await reader.close();
  }
}

function fail(error: unknown): never {
  throw error;
}

function linesOf({ subject, data }: StoredMessage, batches: Set<string>): AuditLine[] {
  const address = parseAuditSubject(subject);
  if (address === undefined) return [];
  const { tenant, domain } = address;
  const { records, batch } = JSON.parse(new TextDecoder().decode(data)) as {
    records: AuditRecord[];
    batch?: string;
  };
  if (batch !== undefined) {
    if (batches.has(batch)) return [];
    if (batches.size >= BATCHES_MAX) batches.clear();
    batches.add(batch);
  }
  return records.map((record) => ({ tenant, domain, ...record }));
}
