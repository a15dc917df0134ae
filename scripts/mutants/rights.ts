/** Faults in rights, tenancy and the record of decisions. */
import type { Mutant } from "./mutant.ts";

const SCOPES = "packages/envelope/test/scopes.test.ts";
const TRAIL = "packages/host/test/audit-trail.test.ts";
const TENANTS = "test/contract/tenants.memory.test.ts";

export const RIGHTS_MUTANTS: readonly Mutant[] = [
  {
    name: "rights: an open pattern is covered by one that needs a segment more",
    file: "packages/envelope/src/scopes.ts",
    find: "outer.isOpen ? inner.fixed.length < outer.fixed.length : inner.isOpen",
    replace: "!outer.isOpen && inner.isOpen",
    tests: [SCOPES],
  },
  {
    name: "rights: any role of the connection makes every claimed one true",
    file: "packages/envelope/src/rights.ts",
    find: "roles.every((role) => grants.roles.includes(role))",
    replace: "grants.roles.length > 0",
    tests: [SCOPES],
  },
  {
    name: "rights: whoever does not stand in the registry may do everything",
    file: "packages/host/src/grants.ts",
    find: "return registry.of(tenant, source) ?? NOTHING;",
    replace: "return registry.of(tenant, source) ?? EVERYTHING;",
    tests: ["packages/host/test/grants.test.ts"],
  },
  {
    name: "rights: a token of another tenant is as good",
    file: "services/delegation-coordinator/src/tokens/judge.ts",
    find: "claims.tenant !== undefined && claims.tenant !== tenant",
    replace: "claims.tenant === undefined && tenant === undefined",
    tests: ["services/delegation-coordinator/test/handoff-token.test.ts"],
  },
  {
    name: "audit: a successor believes its predecessor and not the server",
    file: "packages/host/src/audit/shelf.ts",
    find: "const fresh = records.filter(({ position }) => position > known.to);",
    replace: "const fresh = records;",
    tests: [TRAIL],
  },
  {
    name: "audit: what did not fit is not read from the log",
    file: "packages/host/src/audit/trail.ts",
    find: "      this.#isBehind = true;\n      this.#take();\n",
    replace: "      this.#take();\n",
    tests: [TRAIL],
  },
  {
    name: "audit: entries that every fold passes over are recorded",
    file: "packages/host/src/audit/trail.ts",
    find: "if (frame.prev !== this.#chain.seq) return false;",
    replace: "if (frame.prev > this.#chain.seq) return false;",
    tests: [TRAIL],
  },
  {
    name: "tenancy: sessions of all tenants are one",
    file: "packages/envelope/src/sessions/book.ts",
    find: "return book.tenants.get(tenant)?.get(id);",
    replace: "return [...book.tenants.values()].find((known) => known.has(id))?.get(id);",
    tests: [TENANTS],
  },
];
