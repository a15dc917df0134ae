/**
 * The same file under other names: ids, agents, sessions and tenants, wherever they stand as whole
 * strings. A service that knows a fixture by its names answers differently then.
 */
import { isDerivedId, isId, isWellFormedType } from "@harmovela/envelope";

const AGENT_FIELDS: ReadonlySet<string> = new Set([
  "source",
  "target",
  "delegated_by",
  "delegated_to",
  "attestor",
]);
/** Names of the system itself. */
const SYSTEM_PREFIXES = ["harness:", "service:"];

/** The values with every name replaced by one of its own; values that are no objects stay. */
export function renamed(values: readonly unknown[]): unknown[] {
  const names = new Map<string, string>();
  for (const value of values) collect(value, names);
  return values.map((value) => replace(value, names));
}

function collect(value: unknown, names: Map<string, string>): void {
  if (Array.isArray(value)) {
    for (const item of value) collect(item, names);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  for (const [field, held] of Object.entries(value)) {
    if (typeof held === "string") {
      if (isNameField(field) && isName(held) && !names.has(held)) {
        names.set(held, otherName(held, names.size + 1));
      }
    } else collect(held, names);
  }
}

function isNameField(field: string): boolean {
  return field === "id" || field.endsWith("_id") || AGENT_FIELDS.has(field);
}

/** What is wrong with a name stays wrong, and what reads as a type is one. */
function isName(text: string): boolean {
  return (
    isId(text) &&
    !isDerivedId(text) &&
    !isWellFormedType(text) &&
    !SYSTEM_PREFIXES.some((prefix) => text.startsWith(prefix))
  );
}

/** Keeps what says which kind of name it is: `agent:`, `evt_`. */
function otherName(name: string, count: number): string {
  const kind = /^[a-z]+[:_]/.exec(name)?.[0] ?? "";
  return `${kind}other${count}`;
}

function replace(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return names.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => replace(item, names));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, held]) => [field, replace(held, names)]),
  );
}
