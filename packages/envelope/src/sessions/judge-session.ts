import { type ErrorPayload, reject } from "@harmovela/failure";
import type { Envelope } from "../envelope.ts";
import { CONDITIONS, missingConditionalFields } from "../profiles.ts";
import { findSession, isTerminalSession, type SessionBook } from "./book.ts";
import { isService, namesTwoSessions, sessionIdOf } from "./identity.ts";

export interface SessionSettings {
  /** Refuse events of sessions that nobody opened. Lenient by default (spec 5.1, section 11, C4). */
  strictSessions: boolean;
  /** Profiles in force for events that name no session, or one that nobody opened. */
  defaultProfiles: readonly string[];
}

/** What a session that is not open yet may be asked with (spec 5.1). */
const BEFORE_OPEN: ReadonlySet<string> = new Set(["session.opened", "capabilities.requested"]);

/**
 * Whether its session lets an envelope through (spec 5.1): `session_closed` for every event of a
 * terminal one, its reopening included; `session_error` for a second opening of a live one and, when
 * strict, for a session nobody opened; `invalid_envelope` when envelope and payload name two. What
 * a service says about a session is not the session's own word and passes.
 */
export function judgeSession(
  book: SessionBook,
  tenant: string,
  envelope: Envelope,
  settings: SessionSettings,
): ErrorPayload | undefined {
  if (isService(envelope.source)) return undefined;
  const id = sessionIdOf(envelope);
  if (id === undefined) return undefined;
  if (namesTwoSessions(envelope)) {
    return reject("invalid_envelope", "envelope and payload name different sessions", {
      path: "payload.session_id",
    });
  }
  const session = findSession(book, tenant, id);
  if (session === undefined) {
    if (!settings.strictSessions || BEFORE_OPEN.has(envelope.type)) return undefined;
    return reject("session_error", "nobody has opened this session", { session_id: id });
  }
  if (isTerminalSession(session)) {
    return reject("session_closed", "this session has ended", {
      session_id: id,
      state: session.state,
    });
  }
  if (envelope.type === "session.opened") {
    return reject("session_error", "this session is open already", {
      session_id: id,
      state: session.state,
    });
  }
  return undefined;
}

/** Types for which a profile makes any field required; all others need no closure computed. */
const CONDITIONAL_TYPES: ReadonlySet<string> = new Set(
  Object.values(CONDITIONS).flatMap((rows) => Object.keys(rows)),
);

/**
 * Fields that the profiles in force for an envelope make required (spec 4.2): those of its session,
 * the deployment's own without session or for one that nobody opened. Refuses `invalid_envelope` with
 * `details.missing`.
 */
export function judgeConditions(
  book: SessionBook,
  tenant: string,
  envelope: Envelope,
  settings: SessionSettings,
): ErrorPayload | undefined {
  if (!CONDITIONAL_TYPES.has(envelope.type)) return undefined;
  const profiles = profilesInForce(book, tenant, envelope, settings);
  if (profiles.length === 0) return undefined;
  const missing = missingConditionalFields(envelope, profiles);
  if (missing.length === 0) return undefined;
  return reject("invalid_envelope", "the profiles in force require more fields", { missing });
}

/**
 * The profiles under which an envelope is judged (spec 4.2): what its session negotiated. A session
 * that nobody opened has negotiated nothing; to name one is as good as to name none.
 */
export function profilesInForce(
  book: SessionBook,
  tenant: string,
  envelope: Envelope,
  settings: SessionSettings,
): readonly string[] {
  const id = sessionIdOf(envelope);
  const session = id === undefined ? undefined : findSession(book, tenant, id);
  return session?.profiles ?? settings.defaultProfiles;
}
