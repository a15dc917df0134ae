/** Where a line goes: the subject that its own words give, or a stand-in when they give none. */
import { INTAKE_SUBJECT_LENGTH_MAX, intakeSubject } from "@harmovela/bus";
import { type Domain, domainOf, hasLoneSurrogate, isId } from "@harmovela/envelope";

/** Speaks for lines that do not say who they are from. */
export const STAND_IN = "harness:stdio";

export interface Address {
  subject: string;
  domain: Domain;
}

/** The value of a line, when it is JSON at all; `undefined` when it is not. */
export function lenientJson(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) };
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
  const type = nameIn(value, "type");
  const source = nameIn(value, "source") ?? STAND_IN;
  const domain = type === undefined ? "tasks" : domainOf(type);
  try {
    return { subject: intakeSubject({ tenant, domain, source, type }), domain };
  } catch {
    // Too long for a subject; the envelope's own limits are narrower.
    return { subject: intakeSubject({ tenant, domain: "tasks", source: STAND_IN }), domain: "tasks" };
  }
}

/** The tenant that a line names, when a subject can carry it. */
export function tenantIn(value: unknown): string | undefined {
  const tenant = textIn(value, "tenant_id");
  return tenant !== undefined && isId(tenant) ? tenant : undefined;
}

function nameIn(value: unknown, field: string): string | undefined {
  const text = textIn(value, field);
  return text === undefined || text.length > INTAKE_SUBJECT_LENGTH_MAX ? undefined : text;
}

function textIn(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return undefined;
  const text = (value as Record<string, unknown>)[field];
  return typeof text === "string" && text !== "" && !hasLoneSurrogate(text) ? text : undefined;
}
