export {
  type Disagreement,
  disagreementOf,
  evidenceDisagreementOf,
  repeatsTaskIds,
} from "./agreement.ts";
export {
  claimsMeant,
  EARLY_WITHDRAWALS_MAX,
  isClaimed,
  keepsSubject,
  mayWithdraw,
} from "./assertions/authority.ts";
export {
  assertedKey,
  type Invalidation,
  invalidationOf,
  type Spoken,
} from "./assertions/subject.ts";
export {
  checkEnvelope,
  checkPayload,
  checkType,
  checkVersion,
  isFilterless,
  SUPPORTED_VERSIONS,
} from "./check.ts";
export { addDuration, isDuration } from "./duration.ts";
export type { Delivery, Envelope, EvidenceLink } from "./envelope.ts";
export { Fifo } from "./fifo.ts";
export { FORGOTTEN_MAX, forgetOver } from "./forgetting.ts";
export { governanceRefusal, grantsCrossTenant, isRole } from "./governance.ts";
export { Heap, type HeapItem } from "./heap.ts";
export { deriveId, isDerivedId, newEventId, newId } from "./ids.ts";
export { formatInstant, isInstant, parseInstant } from "./instant.ts";
export { canonicalJson, sameJson } from "./json.ts";
export type {
  BegunEntry,
  Cause,
  DecideContext,
  Decider,
  Decision,
  Domain,
  DomainEntry,
  EntryFrame,
  EventEntry,
  Grants,
  Heartbeats,
  HostEntry,
  Instant,
  Judged,
  LogEntry,
  ObligationFailedEntry,
  ObservedEntry,
  Owed,
  Plan,
  RejectionType,
  SignatureFacts,
  SnapshotSpec,
  TokenFacts,
  TokenIssue,
  TokenIssuedEntry,
  UnderWay,
} from "./judging.ts";
export {
  DEPTH_MAX,
  DURATION_YEARS_MAX,
  EVIDENCE_LINKS_MAX,
  HANDOFF_TOKEN_MAX,
  ID_BYTES_MAX,
  INSTANT_MAX,
  INSTANT_MIN,
  MESSAGE_BYTES_MAX,
  SPAN_MS_MAX,
} from "./limits.ts";
export { parseEnvelope } from "./parse.ts";
export { type ParseOptions, parseJson } from "./parse-json.ts";
export { payloadObject, payloadText, payloadValue } from "./payload-text.ts";
export {
  CONDITIONS,
  type Condition,
  closure,
  isKnownProfile,
  missingConditionalFields,
  PROFILE_DEPENDENCIES,
} from "./profiles.ts";
export {
  isSecured,
  type ProofSettings,
  proofRefusal,
  SIGNATURE_AGE_MS,
  type SignatureProblem,
  SKEW_MS,
  signerIn,
  storedProblem,
  tellProof,
} from "./proof.ts";
export { flagParam, optionalTextParam, textParam, wholeParam } from "./read-params.ts";
export {
  domainOf,
  EVENT_TYPES,
  familyOf,
  isBeginning,
  isRegistered,
  isWellFormedType,
  TYPE_LENGTH_MAX,
} from "./registry.ts";
export { rejectionTypeOf } from "./rejection.ts";
export { type Refusal, type Result, refuse } from "./result.ts";
export { rightsRefusal } from "./rights.ts";
export { Ring, type RingItem } from "./ring.ts";
export {
  envelopeSchema,
  filterSchema,
  jsonSchemas,
  payloadSchemas,
  SEMANTIC_CHECKS,
} from "./schemas.ts";
export {
  covers,
  domainsIn,
  EVERY_SCOPE,
  isGranted,
  mayRead,
  mayWrite,
  participantsIn,
  ROLES_MAX,
  SCOPES_MAX,
  scopeProblem,
  subscriptionGap,
} from "./scopes.ts";
export {
  createSessionBook,
  findSession,
  isTerminalSession,
  SESSION_RETENTION_MS,
  type Session,
  type SessionBook,
  type SessionStateName,
  sessionState,
} from "./sessions/book.ts";
export { describeSession, describeSessions } from "./sessions/describe-sessions.ts";
export { evolveSession } from "./sessions/evolve-session.ts";
export { HeartbeatMemory } from "./sessions/heartbeat-memory.ts";
export { isHarness, isService, namesTwoSessions, sessionIdOf } from "./sessions/identity.ts";
export {
  endInstance,
  type InstanceTable,
  openInstance,
  type SessionInstance,
} from "./sessions/instances.ts";
export {
  judgeConditions,
  judgeSession,
  profilesInForce,
  type SessionSettings,
} from "./sessions/judge-session.ts";
export {
  contentDigest,
  SIGNATURE_MAX,
  SIGNATURE_SCHEME,
  SIGNATURE_TYPE,
  signatureIn,
  signedForm,
} from "./signing.ts";
export { stampDelivery, stampEnvelope } from "./stamp.ts";
export { hasLoneSurrogate, isId } from "./text.ts";
export { isUri } from "./uri.ts";
