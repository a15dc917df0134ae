/** What the service can do, and what a session gets of it (spec 4.3). */
import { closure, MESSAGE_BYTES_MAX, SPAN_MS_MAX, SUPPORTED_VERSIONS } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, type JsonValue, reject } from "@harmovela/failure";
import { effectivePolicy, isObject } from "./policy.ts";
import type { FamilySettings } from "./settings.ts";

const SECURITY = "harmovela.security.v1";
const ADAPTATION = "harmovela.adaptation.v1";

/** The effective policy comes back in `session.ready`, which must fit beside it. */
const POLICY_LENGTH_MAX = 65_536;

/** What tailing gives today: no acknowledgement is tracked, nothing is redelivered. */
const DELIVERY_MODES = ["best_effort"];

/** Another major version may mean anything by what it says (spec 1.2). */
const MAJOR = /^0(\.|$)/;

/** Profiles that can be negotiated: everything they stand on can be too. Security needs to know who speaks. */
export function availableProfiles(settings: FamilySettings): string[] {
  const isKnown = settings.authenticated || settings.processIdentity;
  const offered = new Set(settings.profiles.filter((profile) => profile !== SECURITY || isKnown));
  return [...offered]
    .filter((profile) => closure([profile]).every((needed) => offered.has(needed)))
    .sort();
}

/** The capabilities object of the service (spec 3.2), delivery modes in both places (section 11, C21). */
export function ownCapabilities(settings: FamilySettings): JsonObject {
  return {
    protocol: "harmovela",
    spec_version: "0.2",
    transports: ["nats", "stdio"],
    delivery_modes: DELIVERY_MODES,
    delivery: { modes: DELIVERY_MODES, dead_letter_support: false },
    features: ["envelope", "subscription", "task_lifecycle", "error_model", "command", "query"],
    compression: [],
    max_payload_size: MESSAGE_BYTES_MAX,
    heartbeat_interval_ms: 0,
    profiles: availableProfiles(settings),
    auth: { required: settings.authenticated },
    ...effectivePolicy(settings.policy, {}),
  };
}

/** The answer to an opening: the capabilities of the session with its scopes (spec 9.7), or why there is none. */
export function negotiate(
  settings: FamilySettings,
  opening: JsonObject,
  scopes?: JsonValue,
): { ready: JsonObject } | { error: ErrorPayload } {
  const { version } = opening;
  if (typeof version === "string" && !MAJOR.test(version)) {
    const message = "the opener speaks another major version";
    return {
      error: reject("unsupported_version", message, { supported: [...SUPPORTED_VERSIONS] }),
    };
  }
  const declared = isObject(opening.capabilities) ? opening.capabilities : {};
  const available = new Set(availableProfiles(settings));
  const required = texts(declared.required_profiles);
  const wanted = [...texts(declared.profiles), ...required];
  const profiles = closure(wanted.filter((profile) => available.has(profile)));
  const missing = [...new Set(required)].filter((profile) => !profiles.includes(profile));
  if (missing.length > 0) {
    const message = "a required profile is not available";
    return { error: reject("unsupported_profile", message, { required: missing }) };
  }
  if (ignoresBudget(declared, profiles)) {
    const message = "an exhausted budget may not be ignored at this level";
    const details = { path: "payload.capabilities.termination.on_budget_exhausted" };
    return { error: reject("invalid_capability", message, details) };
  }
  const policy = effectivePolicy(settings.policy, declared);
  if (JSON.stringify(policy).length > POLICY_LENGTH_MAX) {
    const details = { length_max: POLICY_LENGTH_MAX };
    return { error: reject("invalid_capability", "the declared policy is too long", details) };
  }
  return {
    ready: {
      ...ownCapabilities(settings),
      auth: { required: settings.authenticated, ...(scopes === undefined ? {} : { scopes }) },
      heartbeat_interval_ms: heartbeatInterval(settings, declared.heartbeat_interval_ms),
      profiles,
      ...policy,
    },
  };
}

/** Budgets are kept at level L3, and wherever adaptation was agreed (spec 4.3). */
function ignoresBudget(declared: JsonObject, profiles: readonly string[]): boolean {
  const { termination, level } = declared;
  if (!isObject(termination) || termination.on_budget_exhausted !== "ignore") return false;
  return level === "L3" || profiles.includes(ADAPTATION);
}

/** 0 and absent mean off. */
function heartbeatInterval(settings: FamilySettings, declared: JsonValue | undefined): number {
  if (typeof declared !== "number" || !(declared > 0)) return 0;
  return Math.min(SPAN_MS_MAX, Math.max(settings.heartbeatMinMs, Math.ceil(declared)));
}

function texts(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
