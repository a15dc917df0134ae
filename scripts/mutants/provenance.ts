/** Faults in provenance: each makes a lineage or a count say something else than the logs. */
import type { Mutant } from "./mutant.ts";

const SERVICE = "services/provenance-attester";
const at = (name: string): string => `${SERVICE}/test/${name}.test.ts`;

export const PROVENANCE_MUTANTS: readonly Mutant[] = [
  {
    name: "provenance: a source vouches for itself",
    file: `${SERVICE}/src/state.ts`,
    find: "attestation.revoked === undefined && attestation.source !== source",
    replace: "attestation.revoked === undefined",
    tests: [at("attestations")],
  },
  {
    name: "provenance: what is revoked goes on counting",
    file: `${SERVICE}/src/state.ts`,
    find: "attestation.revoked === undefined && attestation.source !== source",
    replace: "attestation.source !== source",
    tests: [at("attestations")],
  },
  {
    name: "provenance: anybody revokes",
    file: `${SERVICE}/src/rules/attestation.ts`,
    find: "source !== envelope.source && !authorities.includes(envelope.source)",
    replace: "source === envelope.source && authorities.includes(envelope.source)",
    tests: [at("attestations")],
  },
  {
    name: "provenance: a wait ends a millisecond early",
    file: `${SERVICE}/src/waits.ts`,
    find: "due: at + waitMs,",
    replace: "due: at + waitMs - 1,",
    tests: [at("waiting")],
  },
  {
    name: "provenance: a revocation of what waits is lost",
    file: `${SERVICE}/src/evolve.ts`,
    find: "addAttestation(state, entry, wait?.revoked);",
    replace: "addAttestation(state, entry, undefined);",
    tests: [at("waiting")],
  },
  {
    name: "provenance: a chain with a hole is intact",
    file: `${SERVICE}/src/rules/chain.ts`,
    find: "  return !links.some(({ id }) => id === before.id);\n",
    replace: "  return links.length < 0;\n",
    tests: [at("chains")],
  },
  {
    name: "provenance: who sent a link is not looked at",
    file: `${SERVICE}/src/rules/chain.ts`,
    find: "link.source !== undefined && link.source !== event.source",
    replace: "link.source === undefined && link.source !== event.source",
    tests: [at("chains")],
  },
  {
    name: "provenance: a truncation does not say what is left",
    file: `${SERVICE}/src/derived.ts`,
    find: "else available = id;",
    replace: "else available = assertion.id;",
    tests: [at("truncation")],
  },
  {
    name: "provenance: what was withdrawn counts as live",
    file: `${SERVICE}/src/assertions.ts`,
    find: "    endLive(state, claim, at);\n  }\n",
    replace: "  }\n",
    tests: [at("truncation")],
  },
  {
    name: "provenance: the end of a retraction takes back what was said since its beginning",
    file: "packages/envelope/src/assertions/authority.ts",
    find: '"in" in cause && envelope',
    replace: "Object.keys(cause).length > 0 && envelope",
    tests: [at("truncation")],
  },
  {
    name: "provenance: what is forgotten depends on the order of other logs",
    file: `${SERVICE}/src/seen.ts`,
    find: "missing?.withdrawn ?? known?.takenBack",
    replace: "missing?.withdrawn",
    tests: [at("attester.prop")],
  },
  {
    name: "provenance: a revoked key signs with an old date",
    file: "packages/envelope/src/proof.ts",
    find: 'facts.revokedAt <= now) return "revoked"',
    replace: 'facts.revokedAt <= createdAt) return "revoked"',
    tests: [at("signatures")],
  },
  {
    name: "provenance: a signature holds in every tenant",
    file: "packages/envelope/src/signing.ts",
    find: "    tenant_id: tenant,\n",
    replace: "    tenant_id: tenant.slice(0, 0),\n",
    tests: ["packages/envelope/test/signing.test.ts"],
  },
  {
    name: "provenance: whoever sends a refused attestation again is told that it waits",
    file: "packages/host/src/obligations.ts",
    find: "refuses === undefined ? {} : { digest: digestOf(refuses) }",
    replace: "refuses === undefined ? { digest: digestOf(envelope) } : {}",
    tests: ["test/integration/provenance.int.test.ts"],
  },
  {
    name: "provenance: a hole in a log is told of as a truncation",
    file: "packages/host/src/observation-keeper.ts",
    find: "    return { log, first: firstSeq };\n",
    replace: "    return { log, first: firstSeq + Math.max(0, missing) };\n",
    tests: ["packages/host/test/observation.int.test.ts"],
  },
];
