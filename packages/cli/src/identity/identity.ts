/** Who may connect: what is kept of each, the public half of a key among it. */
import { type Domain, isRole, ROLES_MAX, SCOPES_MAX, scopeProblem } from "@harmovela/envelope";

export type Identity =
  | {
      kind: "agent" | "observer";
      tenant: string;
      name: string;
      key: string;
      roles?: string[];
      /** Absent: everything of its tenant. */
      scopes?: string[];
    }
  | {
      kind: "service";
      domain: Domain;
      service: string;
      connection: "writer" | "answerer";
      key: string;
    }
  | { kind: "operator"; name: string; key: string };

/** For people. */
export function labelOf(identity: Identity): string {
  switch (identity.kind) {
    case "service":
      return `${identity.domain} ${identity.connection}`;
    case "operator":
      return identity.name;
    default:
      return `${identity.tenant} ${identity.name}`;
  }
}

/** Whether both are the same one, whatever their keys. An observer and an agent of one name share an inbox. */
export function isSameOne(one: Identity, other: Identity): boolean {
  if ("tenant" in one) {
    return "tenant" in other && one.tenant === other.tenant && one.name === other.name;
  }
  return !("tenant" in other) && one.kind === other.kind && labelOf(one) === labelOf(other);
}

const KEY = /^U[A-Z2-7]{55}$/;
const FIELDS = {
  agent: ["tenant", "name", "key"],
  observer: ["tenant", "name", "key"],
  service: ["domain", "service", "connection", "key"],
  operator: ["name", "key"],
} as const;

/** One that was kept; undefined when the value is none. */
export function asIdentity(value: unknown): Identity | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const record = value as Record<string, unknown>;
  const { kind, key } = record;
  if (typeof kind !== "string" || !Object.hasOwn(FIELDS, kind)) return undefined;
  if (typeof key !== "string" || !KEY.test(key)) return undefined;
  const fields = FIELDS[kind as Identity["kind"]];
  if (!fields.every((field) => typeof record[field] === "string" && record[field] !== ""))
    return undefined;
  return rightsProblem(record) === undefined ? (value as Identity) : undefined;
}

/** What is wrong with roles and scopes that somebody is to have. */
export function rightsProblem(rights: { roles?: unknown; scopes?: unknown }): string | undefined {
  const { roles = [], scopes = [] } = rights;
  if (!isListOfTexts(roles, ROLES_MAX)) return `at most ${ROLES_MAX} roles`;
  if (!isListOfTexts(scopes, SCOPES_MAX)) return `at most ${SCOPES_MAX} scopes`;
  const role = roles.find((name) => !isRole(name));
  if (role !== undefined) return `there is no role ${role}`;
  for (const scope of scopes) {
    const problem = scopeProblem(scope);
    if (problem !== undefined) return `${scope}: ${problem}`;
  }
  return undefined;
}

function isListOfTexts(value: unknown, max: number): value is string[] {
  return (
    Array.isArray(value) && value.length <= max && value.every((item) => typeof item === "string")
  );
}
