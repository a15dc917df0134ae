/**
 * The processes of an agent (spec 5.1, 5.4): processes of one name each speak in a session of their own, so an
 * instance of an agent is a session that it has opened. Every service that follows who has a task folds them
 * alike; what it keeps of each is its own.
 */
import type { Envelope } from "../envelope.ts";
import type { DomainEntry, EventEntry } from "../judging.ts";
import { findSession, isTerminalSession, type SessionBook } from "./book.ts";
import { sessionIdOf } from "./identity.ts";

/** What is kept of an instance by whoever follows them. */
export interface SessionInstance {
  /** Its session. */
  readonly session: string;
}

/** Where the instances of one tenant are kept, by session. */
export interface InstanceTable<Instance extends SessionInstance> {
  readonly name: string;
  readonly instances: Map<string, Instance>;
}

/**
 * The instance that sends an event: of a session that is live and its own; made when it is not there yet.
 * Undefined for who speaks in no session, or in one that is another's or over.
 */
export function openInstance<Instance extends SessionInstance>(
  book: SessionBook,
  { name, instances }: InstanceTable<Instance>,
  { session_id: id, source }: Envelope,
  make: (session: string) => Instance,
): Instance | undefined {
  if (id === undefined) return undefined;
  const session = findSession(book, name, id);
  if (session?.initiator !== source || isTerminalSession(session)) return undefined;
  const known = instances.get(id);
  if (known !== undefined) return known;
  const instance = make(session.id);
  instances.set(id, instance);
  return instance;
}

/**
 * The instance whose session an entry of the log of `tasks` has ended, taken off the table; the session book
 * has folded the entry before.
 */
export function endInstance<Instance extends SessionInstance>(
  book: SessionBook,
  tenants: ReadonlyMap<string, InstanceTable<Instance>>,
  entry: DomainEntry,
): { instance: Instance; entry: EventEntry } | undefined {
  if (entry.kind !== "event" || !entry.envelope.type.startsWith("session.")) return undefined;
  const { envelope, tenant: name } = entry;
  const id = sessionIdOf(envelope);
  const instances = tenants.get(name)?.instances;
  const instance = id === undefined ? undefined : instances?.get(id);
  if (id === undefined || instance === undefined) return undefined;
  const session = findSession(book, name, id);
  if (session && !isTerminalSession(session)) return undefined;
  instances?.delete(id);
  return { instance, entry };
}
