/** Where a line goes: the subject that its own words give, or a stand-in when they give none. */
import { intakeSubject, NO_TENANT, parseIntakeSubject } from "@harmovela/bus";
import { type Domain, domainOf, isId } from "@harmovela/envelope";

/** Speaks for lines that do not say who they are from. */
export const STAND_IN = "harness:stdio";

export interface Address {
  subject: string;
  domain: Domain;
}

// A byte order mark is no JSON, for the judge as well.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value of a line, when it is JSON at all; `undefined` when it is not. */
export function lenientJson(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(decoder.decode(bytes)) };
  } catch {
    // Not UTF-8 or not JSON.
    return undefined;
  }
}

/**
 * The intake subject of a parsable line. A line whose type or source cannot stand in a subject is
 * published as the stand-in's: the service refuses it for what is wrong with it.
 */
export function addressOf(value: unknown, tenant: string): Address {
  const type = textIn(value, "type");
  const named = textIn(value, "source");
  const source = isId(named) ? named : STAND_IN;
  const domain = type === undefined ? "tasks" : domainOf(type);
  const subject = ownSubject({ tenant, domain, source, type });
  if (subject !== undefined) return { subject, domain };
  const standIn = { tenant, domain: "tasks", source: STAND_IN } as const;
  return { subject: intakeSubject(standIn), domain: "tasks" };
}

/** Undefined when the service could not read the names back. */
function ownSubject(to: Parameters<typeof intakeSubject>[0]): string | undefined {
  try {
    const subject = intakeSubject(to);
    return parseIntakeSubject(subject) === undefined ? undefined : subject;
  } catch {
    // Too long for a subject; the envelope's own limits are narrower.
    return undefined;
  }
}

/** The tenant that a line names, when there can be such a one. */
export function tenantIn(value: unknown): string | undefined {
  const tenant = textIn(value, "tenant_id");
  return isTenant(tenant) ? tenant : undefined;
}

/** Whether a tenant can have this name. */
export function isTenant(name: unknown): name is string {
  return isId(name) && name !== NO_TENANT;
}

function textIn(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return undefined;
  const text = (value as Record<string, unknown>)[field];
  return typeof text === "string" && text !== "" ? text : undefined;
}
