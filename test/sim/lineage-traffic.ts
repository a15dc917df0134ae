/** What agents say to the attester: attestations of whatever any log may hold, revocations, truncations. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { Draft } from "./drafts.ts";
import type { Scribe } from "./scribe.ts";

const VOUCHERS = ["agent:v", "agent:w", "agent:x", "agent:a", "agent:b"] as const;
/** May revoke what others attested. */
export const JUDGE = "agent:judge";

export class LineageTraffic {
  readonly #random: SimRandom;
  readonly #scribe: Scribe;
  readonly #now: () => number;
  /** Attestations that were sent. */
  readonly #sent: { id: string; source: string }[] = [];
  #said = 0;

  constructor(parts: { random: SimRandom; scribe: Scribe; now(): number }) {
    this.#random = parts.random;
    this.#scribe = parts.scribe;
    this.#now = parts.now;
  }

  next(): Draft {
    this.#said += 1;
    const random = this.#random;
    const known = this.#sent.length === 0 ? undefined : random.pick(this.#sent);
    if (known !== undefined && random.chance(0.25)) {
      const source = random.pick([known.source, known.source, known.source, JUDGE, "agent:v"]);
      const of = random.chance(0.9) ? known.id : this.#scribe.anyId();
      return this.#say("revoked", source, { causation_id: of }, { reason: "wrong" });
    }
    const of = random.chance(0.1) && known !== undefined ? known.id : this.#scribe.anyId();
    if (random.chance(0.05)) {
      const source = this.#scribe.sourceOf(of) ?? "agent:a";
      const payload = { earliest_available: of, missing_from: this.#scribe.anyId(), reason: "r" };
      return this.#say("truncated", source, { causation_id: of }, payload);
    }
    const before = this.#scribe.anyId();
    const chain = [before, of].map((id) => ({
      id,
      source: this.#scribe.sourceOf(id) ?? "agent:a",
    }));
    const more = random.chance(0.2) ? { evidence_chain: chain } : {};
    const source = random.pick(VOUCHERS);
    const payload = { attestor: source, method: "m" };
    const draft = this.#say("added", source, { causation_id: of, ...more }, payload);
    this.#sent.push({ id: String(draft.envelope.id), source });
    return draft;
  }

  #say(
    name: "added" | "revoked" | "truncated",
    source: string,
    fields: Partial<Envelope>,
    payload: JsonObject,
  ): Draft {
    const kind = name === "truncated" ? "chain" : "attestation";
    const envelope: Partial<Envelope> = {
      spec_version: "0.2",
      id: `said_${this.#said}`,
      type: `provenance.${kind}.${name}`,
      source,
      created_at: new Date(this.#now()).toISOString(),
      ...fields,
      payload,
    };
    return { tenant: this.#scribe.tenant, envelope, wants: "verdict" };
  }
}
