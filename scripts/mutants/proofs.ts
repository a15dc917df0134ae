/** Faults in what every service holds alike: proofs, live assertions, and what is known of other logs. */
import type { Mutant } from "./mutant.ts";

const PROOFS = "test/services/proofs.test.ts";
const LIVE = "test/services/live-assertions.test.ts";
const BAD_LOGS = "packages/check/test/bad-logs.test.ts";
const TRACKER = "services/belief-tracker";
const AUTHORITY = "packages/envelope/src/assertions/authority.ts";

export const PROOF_MUTANTS: readonly Mutant[] = [
  {
    name: "proofs: where senders are proved a claim to be signed is believed outside secure sessions",
    file: "packages/envelope/src/proof.ts",
    find: "    settings.authenticated || profilesInForce",
    replace: "    profilesInForce",
    tests: [PROOFS],
  },
  {
    name: "proofs: an authorization of any scheme is taken",
    file: "packages/envelope/src/proof.ts",
    find: "isRecord(authorization) && authorization.scheme !== SIGNATURE_SCHEME",
    replace: 'isRecord(authorization) && authorization.scheme === ""',
    tests: [PROOFS],
  },
  {
    name: "proofs: the tracker does not ask",
    file: `${TRACKER}/src/decide.ts`,
    find: "    proofRefusal(state.sessions, input, settings, now) ??\n",
    replace: "",
    tests: [PROOFS],
  },
  {
    name: "proofs: of several who take back what has not come the first one is heard",
    file: AUTHORITY,
    find: "EARLY_WITHDRAWALS_MAX = 64",
    replace: "EARLY_WITHDRAWALS_MAX = 1",
    tests: [LIVE],
  },
  {
    name: "proofs: a system that names an older word takes back what everybody says",
    file: AUTHORITY,
    find: "named?.key === key ? claims.get(named.source) : undefined",
    replace: 'named?.key === "" ? claims.get(named.source) : undefined',
    tests: [LIVE],
  },
  {
    name: "proofs: what is still claimed is in doubt because its entry is gone",
    file: `${TRACKER}/src/truncation.ts`,
    find: "  const seen = new Set<Node>([root]);\n",
    replace:
      '  if (root.kind === "claim" && isLive(root)) yield { claim: root, dependsOn: root.event };\n  const seen = new Set<Node>([root]);\n',
    tests: [`${TRACKER}/test/truncation.test.ts`],
  },
  {
    name: "proofs: the checker counts attestations of the asserting side",
    file: "packages/check/src/provenance/vouching.ts",
    find: "!isWaiting && source !== asserting",
    replace: "!isWaiting",
    tests: [BAD_LOGS],
  },
  {
    name: "proofs: what is noted of other logs bears the time of the last message",
    file: "packages/host/src/observation-keeper.ts",
    find: "at: Math.max(at, fold.at)",
    replace: "at: fold.at",
    tests: ["packages/host/test/observation.int.test.ts"],
  },
  ...[
    [`${TRACKER}/src/state.ts`, `${TRACKER}/test/beliefs.prop.test.ts`],
    [
      "services/delegation-coordinator/src/tasks.ts",
      "services/delegation-coordinator/test/delegation.prop.test.ts",
    ],
    [
      "services/interruption-manager/src/state.ts",
      "services/interruption-manager/test/manager.prop.test.ts",
    ],
    [
      "services/provenance-attester/src/state.ts",
      "services/provenance-attester/test/attester.prop.test.ts",
    ],
  ].map(
    ([file = "", test = ""]): Mutant => ({
      name: `tenants: a second one lives in the first one's state (${file})`,
      file,
      find: "let tenant = state.tenants.get(name);",
      replace: "let tenant = state.tenants.get(name) ?? [...state.tenants.values()][0];",
      tests: [test],
    }),
  ),
];
