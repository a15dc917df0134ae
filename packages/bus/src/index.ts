export { type Clock, systemClock } from "./clock.ts";
export {
  decodeEntry,
  decodeFrame,
  encodeControlBody,
  encodeFrame,
  type FramedMessage,
  NO_TENANT,
} from "./entry-codec.ts";
export { findNatsServer } from "./find-nats-server.ts";
export { HEADER } from "./headers.ts";
export { type BusAuth, type ConnectBusOptions, connectBus } from "./jetstream/connect.ts";
export type { ConnectionChange } from "./jetstream/connection-state.ts";
export { JetStreamBus } from "./jetstream/jetstream-bus.ts";
export { LEASE_BUCKET } from "./lease-keeper.ts";
export type { Arrival, ArrivalFault, MemoryFaults } from "./memory/faults.ts";
export { MemoryBus } from "./memory/memory-bus.ts";
export { MemoryServer, type MemoryServerOptions } from "./memory/memory-server.ts";
export {
  type AgentIdentity,
  agentPermissions,
  BORDER_REPLY_PREFIX,
  observerPermissions,
  type Permissions,
  type ServiceIdentity,
  servicePermissions,
} from "./permissions.ts";
export type {
  Appender,
  AppenderOptions,
  AppendFailure,
  BlobInfo,
  BlobPage,
  Blobs,
  BlobsOptions,
  Bus,
  CoreMessage,
  Headers,
  Lease,
  LeaseOptions,
  Reader,
  ReaderOptions,
  StoredBlob,
  StoredMessage,
  StreamSpec,
  StreamState,
  Subscription,
} from "./port.ts";
export {
  AUDIT_MAX_AGE_MS,
  AUDIT_MAX_BYTES,
  AUDIT_STREAM,
  auditStreamSpec,
  BLOB_BUCKET,
  CHECKPOINT_BUCKET,
  CHECKPOINT_BYTES_MAX,
  CHECKPOINT_STORE_BYTES,
  checkpointName,
  checkpointPrefix,
  intakeStream,
  intakeStreamSpec,
  logStream,
  logStreamSpec,
  MESSAGE_BYTES_MAX,
  type StreamOptions,
} from "./streams.ts";
export {
  auditSubject,
  type ControlAddress,
  controlSubject,
  DOMAINS,
  decodeToken,
  type EntrySelection,
  encodeToken,
  entryFilter,
  evSubject,
  INTAKE_SUBJECT_LENGTH_MAX,
  type IntakeAddress,
  intakeSubject,
  isPublishable,
  isTypePattern,
  isUnderInbox,
  type LogAddress,
  liveSubject,
  logSubject,
  parseAuditSubject,
  parseControlSubject,
  parseEvSubject,
  parseIntakeSubject,
  parseLogSubject,
  parseRpcSubject,
  REPLY_LENGTH_MAX,
  type RpcAddress,
  rpcSubject,
  SUBJECT_LENGTH_MAX,
} from "./subjects.ts";
export { authFromFile, newUserKey, type UserKey } from "./user-key.ts";
