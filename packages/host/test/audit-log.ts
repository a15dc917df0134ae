/** What the audit stream holds, and what it must hold: one record for each thing that a log decides. */
import assert from "node:assert/strict";
import {
  AUDIT_STREAM,
  auditSubject,
  type Bus,
  logStream,
  parseAuditSubject,
  type StoredMessage,
} from "@harmovela/bus";
import type { Domain, LogEntry } from "@harmovela/envelope";
import { recordsOf } from "../src/audit/record.ts";
import type { AuditRecord } from "../src/index.ts";

export type Stored = AuditRecord & { tenant: string; kind: string };

async function messagesOf(bus: Bus, stream: string): Promise<StoredMessage[]> {
  const { lastSeq = 0, firstSeq = 0 } = (await bus.streamState(stream)) ?? {};
  const messages: StoredMessage[] = [];
  for (let seq = firstSeq; seq <= lastSeq && seq > 0; seq += 1) {
    const message = await bus.read(stream, seq);
    if (message !== undefined) messages.push(message);
  }
  return messages;
}

/** Every record of a domain, as it is stored now; each message must be of the tenant that its subject names. */
export async function readAudit(bus: Bus, domain: Domain = "tasks"): Promise<Stored[]> {
  const messages = await messagesOf(bus, AUDIT_STREAM);
  return messages.flatMap(({ subject, data }) => {
    const address = parseAuditSubject(subject);
    if (address === undefined || address.domain !== domain) return [];
    const body = JSON.parse(new TextDecoder().decode(data)) as {
      tenant: string;
      records: AuditRecord[];
    };
    assert.equal(body.tenant, address.tenant);
    return body.records.map((record) => ({ ...record, ...address }));
  });
}

/** What was judged is recorded once and in order, for each tenant; `entries` are those of the log that count. */
export function assertRecorded(audit: readonly Stored[], entries: readonly LogEntry[]): void {
  const judged = audit.filter(({ kind }) => kind === "judged");
  const owed = entries.flatMap(recordsOf);
  const tenants = new Set([...judged, ...owed].map(({ tenant }) => tenant));
  for (const tenant of tenants) {
    const is = judged.filter((one) => one.tenant === tenant);
    const must = owed.filter((one) => one.tenant === tenant);
    assert.deepEqual(
      is.map(
        ({ tenant: _t, kind: _k, domain: _d, ...record }: Stored & { domain?: string }) => record,
      ),
      must.map(({ record }) => record),
      tenant,
    );
  }
}

/** Whether the record goes as far as the log does. */
export async function isRecorded(bus: Bus, domain: Domain = "tasks"): Promise<boolean> {
  const { lastSeq = 0 } = (await bus.streamState(logStream(domain))) ?? {};
  const marker = await bus.lastOn(AUDIT_STREAM, auditSubject(undefined, domain, "upto"));
  if (marker === undefined) return false;
  return (JSON.parse(new TextDecoder().decode(marker.data)) as { to: number }).to >= lastSeq;
}
