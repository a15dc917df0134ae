export { openAgentKeyFile } from "./agent-key-file.ts";
export {
  type AgentKeyRecord,
  type AgentKeySet,
  type AgentKeys,
  openAgentKeys,
} from "./agent-keys.ts";
export type { AuditRecord } from "./audit/record.ts";
export { Counters } from "./counters.ts";
export { LOOK_EVERY_MS } from "./file-version.ts";
export { Fold, FoldError } from "./fold.ts";
export {
  type GrantRecord,
  type GrantsRegistry,
  openGrants,
  openGrantsFile,
} from "./grants.ts";
export { type Host, openHost } from "./host.ts";
export type { HostStatus } from "./host-status.ts";
export { ConfigError, type ProcessConfig, readConfig, runProcess } from "./main.ts";
export { openHostPatiently } from "./open-patiently.ts";
export type {
  Act,
  AuditLimits,
  HostOptions,
  ReadContext,
  ReadHandler,
  TokenIssuer,
} from "./options.ts";
export { REPLAYS_PER_AGENT_MAX, ReplayDesk } from "./replay/desk.ts";
export {
  type Acts,
  type Companion,
  type CompanionContext,
  openService,
  type RunningService,
  type ServiceConfig,
  type ServiceDefinition,
} from "./service.ts";
export { cut, instantPacking, type Packing, readSnapshot } from "./snapshot/format.ts";
export { SOURCE_LIMITS, type SourceLimits } from "./source-rate.ts";
export { openTokenKeyFile, tokenKeyFileIn } from "./token-key-file.ts";
export {
  generateTokenKeys,
  openTokenKeys,
  rotateTokenKeys,
  type TokenKeySet,
  type TokenKeys,
} from "./tokens.ts";
