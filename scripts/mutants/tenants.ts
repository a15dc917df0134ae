/** Faults in what keeps tenants apart where they share room: each lets one take what is another's. */
import type { Mutant } from "./mutant.ts";

const STORE = "services/interruption-manager/src/store";
const STORE_TESTS = "services/interruption-manager/test";
const ATTESTER = "services/provenance-attester";

export const TENANT_MUTANTS: readonly Mutant[] = [
  {
    name: "tenants: the quota of one counts what all have stored",
    file: `${STORE}/tenant-room.ts`,
    find: 'return name.slice(0, Math.max(0, name.indexOf(".")));',
    replace: "return name.slice(0, 0);",
    tests: [`${STORE_TESTS}/tenant-room.test.ts`],
  },
  {
    name: "tenants: of many claims at once each finds the same room",
    file: `${STORE}/tenant-room.ts`,
    find: "while (!this.#fits(claim));",
    replace: "while (false as boolean);",
    tests: [`${STORE_TESTS}/tenant-room.test.ts`],
  },
  {
    name: "tenants: a new leader goes on with the count of an old one",
    file: `${STORE}/tenant-room.ts`,
    find: "this.#count?.epoch === epoch && ",
    replace: "this.#count !== undefined && ",
    tests: [`${STORE_TESTS}/tenant-room.test.ts`],
  },
  {
    name: "tenants: whoever begins an upload is refused for what another one holds",
    file: `${STORE}/uploads.ts`,
    find: "if (byTenant.get(tenant) === most) return false;",
    replace: "return false;",
    tests: [`${STORE_TESTS}/uploads.test.ts`],
  },
  {
    name: "tenants: the attester lets go of the oldest, whoever's it is",
    file: `${ATTESTER}/src/forgetting.ts`,
    find: "largest?.tenant.over.peek()?.event",
    replace: "state.over.peek()",
    tests: [`${ATTESTER}/test/forgetting.test.ts`],
  },
  {
    name: "tenants: made-up sessions of one make others count as heard",
    file: "packages/envelope/src/sessions/heartbeat-memory.ts",
    find: "return this.#tenants.get(tenant)?.since ?? this.#since;",
    replace:
      "return Math.max(this.#since, ...[...this.#tenants.values()].map(({ since }) => since)) + 0 * tenant.length;",
    tests: ["packages/envelope/test/session-book.test.ts"],
  },
  {
    name: "tenants: a replay closes the reader that was used longest ago, whoever's it is",
    file: "packages/host/src/replay/kept-readers.ts",
    find: "return this.#makeRoom(0, (other) => other.tenant === largest);",
    replace: 'return this.#makeRoom(0, () => largest !== "");',
    tests: ["packages/host/test/kept-readers.test.ts"],
  },
  {
    name: "tenants: records of questions are lost whoever asks too much",
    file: "packages/host/src/audit/book.ts",
    find: "if (!this.#takesPlaceOfAnother(tenant)) return;",
    replace: "return;",
    tests: ["packages/host/test/audit-book.test.ts"],
  },
];
