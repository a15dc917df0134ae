/**
 * Nothing of a tenant is seen by another: what a decider is told in a test is told again, once to one
 * tenant alone and once with a twin beside it that says the same under the same names. The one notices
 * nothing of the other: the same verdicts, the same entries, the same state.
 *
 * All positions are the same in both runs, as if somebody else's messages lay between; so whatever
 * differs is a leak.
 */
import assert from "node:assert/strict";
import type { Decider, Decision, Domain, DomainEntry } from "@harmovela/envelope";
import type { JsonValue } from "@harmovela/failure";
import { type Act, Given } from "./given.ts";

/** Entries that belong to nobody. */
const NOBODY = "-";
const TWIN = " twin";
const NOTHING_NEW = {
  kind: "observed",
  first: {},
  cause: { owed: "observed" },
  tenant: NOBODY,
} as const;
/** Plans are worked off only so often, so that messages meet plans that are under way. */
const ACTS_BETWEEN = 3;
const OWED_MAX = 100_000;

/** `describe`: the state in words, with an object for each tenant among its `tenants`. */
export function assertTenantsApart<State>(
  { decider, acts }: Given<State>,
  describe: (state: State) => JsonValue,
): void {
  for (const order of [
    ["", TWIN],
    [TWIN, ""],
  ]) {
    const both = new Retelling(decider, order, () => true);
    both.tell(acts);
    const seqs = both.entries.map(({ seq }) => seq);
    const alone = new Retelling(decider, order, (suffix) => suffix === "", seqs);
    alone.tell(acts);
    assert.deepEqual(alone.decisions, both.decisions);
    assert.deepEqual(alone.entries, both.entries);
    const [one, other] = [alone, both].map(({ state }) => ownIn(describe(state)));
    assert.deepEqual(one, other);
  }
}

/** What a description says of tenants that are no twins. */
function ownIn(described: JsonValue): JsonValue[] {
  const { tenants } = described as { tenants: JsonValue[] };
  return tenants.filter((tenant) => !JSON.stringify(tenant).includes(TWIN));
}

/** One telling of the acts; what it keeps is of the tenants that were told of at first. */
class Retelling<State> {
  readonly decisions: Decision[] = [];
  readonly entries: DomainEntry[] = [];
  readonly #given: Given<State>;
  readonly #suffixes: readonly string[];
  readonly #isTold: (suffix: string) => boolean;
  readonly #seqs: number[] | undefined;
  #intake = 0;
  #seq = 0;
  readonly #seen: Partial<Record<Domain, number>> = {};

  /** `seqs`: the positions of its entries, one after the other. */
  constructor(
    decider: Decider<State>,
    suffixes: readonly string[],
    isTold: (suffix: string) => boolean,
    seqs?: readonly number[],
  ) {
    this.#suffixes = suffixes;
    this.#isTold = isTold;
    this.#seqs = seqs === undefined ? undefined : [...seqs];
    this.#given = new Given(decider, {
      numbering: {
        intake: () => this.#intake,
        seq: () => this.#nextSeq(),
        seen: () => ({ ...this.#seen }),
      },
    });
  }

  get state(): State {
    return this.#given.state;
  }

  tell(acts: readonly Act[]): void {
    for (const [index, act] of acts.entries()) {
      this.#given.now = act.at;
      // What is over is forgotten when an entry comes, whosever it is.
      this.#note(this.#given.append(NOTHING_NEW));
      for (const suffix of this.#suffixes) this.#tellOne(act, suffix);
      if (index % ACTS_BETWEEN === 0) this.#workOff();
    }
    this.#workOff();
  }

  #tellOne(act: Act, suffix: string): void {
    if (act.kind === "own") {
      if (suffix === "") this.#note(this.#given.append(act.entry));
      return;
    }
    this.#intake += 1;
    const seq = act.kind === "observed" ? this.#seeNext(act.domain) : 0;
    if (!this.#isTold(suffix)) return;
    if (act.kind === "observed") {
      const { entry } = act;
      const tenant = `${entry.tenant}${suffix}`;
      const told = { ...entry, tenant, seq, prev: seq - 1 };
      this.#given.decider.observe?.(this.state, act.domain, told);
      return;
    }
    const tenant = `${act.input.tenant}${suffix}`;
    const { decision, entry } = this.#given.judgeInput({ ...act.input, tenant });
    if (suffix === "") this.decisions.push(decision);
    if (entry !== undefined) this.#note(entry);
  }

  /** Everything that is owed, as if every request were under way. */
  #workOff(): void {
    const requests = new Set<string>();
    for (let count = 0; ; count += 1) {
      assert.ok(count < OWED_MAX, "the service never comes to rest");
      const owed = this.#given.decider.owed(this.state, this.#given.now, { requests });
      if (owed === undefined || "wakeAt" in owed) return;
      if ("request" in owed) {
        requests.add(owed.request.id);
        continue;
      }
      const { tenant } = owed;
      const cause = { owed: owed.cause };
      this.#note(
        this.#given.append(
          "begin" in owed
            ? { kind: "begun", plan: owed.begin, cause, tenant }
            : { kind: "event", envelope: owed.event, cause, tenant },
        ),
      );
    }
  }

  #seeNext(domain: Domain): number {
    const seq = (this.#seen[domain] ?? 0) + 1;
    this.#seen[domain] = seq;
    return seq;
  }

  #nextSeq(): number {
    this.#seq = this.#seqs?.shift() ?? this.#seq + 1;
    return this.#seq;
  }

  #note(entry: DomainEntry): void {
    if (!entry.tenant.endsWith(TWIN)) this.entries.push(entry);
  }
}
