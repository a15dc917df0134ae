import type { DomainEvent } from "../domain-event.ts";
import type { FindingSink } from "../finding.ts";
import { isObject } from "../record.ts";
import type { Across } from "./across.ts";

interface Voucher {
  source: string;
  /** The event that it speaks of. */
  of: string | undefined;
  at: number;
  /** It waits for what it speaks of, since then. */
  isWaiting: boolean;
  revokedBy: string | undefined;
}

/** Who vouches for what in one tenant, and what was taken back (spec section 8). */
export class Vouching {
  readonly #sink: FindingSink;
  readonly #across: Across;
  readonly #tenant: string;
  /** By the id of the attestation, the oldest first. */
  readonly #vouchers = new Map<string, Voucher>();
  /** Attestations by the event that they speak of. */
  readonly #ofEvent = new Map<string, Set<Voucher>>();
  /** Something may be known that stands here no longer. */
  #isForgetful: boolean;

  constructor(sink: FindingSink, across: Across, tenant: string, isLenient: boolean) {
    this.#sink = sink;
    this.#across = across;
    this.#tenant = tenant;
    this.#isForgetful = isLenient;
  }

  attest({ envelope, frame }: DomainEvent): void {
    const waited = this.#vouchers.get(envelope.id);
    const of = namedBy(envelope);
    if (waited !== undefined) waited.isWaiting = false;
    else this.#add(envelope.id, { source: envelope.source, of, at: frame.at, isWaiting: false });
    const book = this.#across.bookOf(this.#tenant);
    if (of === undefined) return;
    const event = book.get(of);
    if (event === undefined) {
      if (this.#across.isWhole(this.#tenant)) {
        this.#sink.add("attestation-unknown", `${envelope.id} speaks of ${of}, which no log shows`);
      }
      return;
    }
    const told = isObject(frame.verdict) ? frame.verdict.attestation_count : undefined;
    const isKnown = this.#across.knownFor(this.#tenant, of, frame.at) !== undefined;
    if (told === undefined || event.isAmbiguous || !isKnown || this.#isForgetful) return;
    const count = this.#count(of, event.source);
    if (told !== count) {
      this.#sink.add("attestation-count", `${of} has ${count} attestations, told ${String(told)}`);
    }
  }

  wait({ envelope, frame }: DomainEvent): void {
    const of = namedBy(envelope);
    this.#add(envelope.id, { source: envelope.source, of, at: frame.at, isWaiting: true });
    if (this.#across.knownFor(this.#tenant, of, frame.at) === undefined) return;
    this.#sink.add("wait-pointless", `${envelope.id} waits for ${of}, which was seen before`);
  }

  #add(id: string, voucher: Omit<Voucher, "revokedBy">): void {
    const added = { ...voucher, revokedBy: undefined };
    this.#vouchers.set(id, added);
    if (added.of === undefined) return;
    const all = this.#ofEvent.get(added.of) ?? new Set();
    this.#ofEvent.set(added.of, all.add(added));
  }

  #drop(id: string): Voucher | undefined {
    const voucher = this.#vouchers.get(id);
    this.#vouchers.delete(id);
    const all = this.#ofEvent.get(voucher?.of ?? "");
    if (voucher !== undefined && all?.delete(voucher) && all.size === 0) {
      this.#ofEvent.delete(voucher.of ?? "");
    }
    return voucher;
  }

  /** Distinct sources other than the asserting one that have not taken it back. */
  #count(of: string, asserting: string): number {
    const sources = new Set<string>();
    for (const { source, revokedBy, isWaiting } of this.#ofEvent.get(of) ?? []) {
      if (revokedBy === undefined && !isWaiting && source !== asserting) sources.add(source);
    }
    return sources.size;
  }

  revoke({ envelope }: DomainEvent): void {
    const id = namedBy(envelope);
    const voucher = this.#vouchers.get(id ?? "");
    if (voucher === undefined) {
      if (id !== undefined && this.#isForgetful) return;
      this.#sink.add("revocation-unknown", `${envelope.id} revokes ${id ?? "nothing"}`);
      return;
    }
    const { source, revokedBy } = voucher;
    if (revokedBy !== undefined) {
      this.#sink.add("revocation-twice", `${id} was revoked by ${revokedBy} before`);
    }
    const { authorities } = this.#across.settings;
    if (source !== envelope.source && !authorities.includes(envelope.source)) {
      this.#sink.add("revocation-party", `${envelope.source} revokes what ${source} attested`);
    }
    voucher.revokedBy ??= envelope.id;
  }

  /** A plan ended without its attestation. */
  refuse({ frame }: DomainEvent, id: string, isNeverSeen: boolean): void {
    const voucher = this.#drop(id);
    if (voucher === undefined || !isNeverSeen) return;
    const due = voucher.at + this.#across.settings.evidenceWaitMs;
    if (frame.at < due) {
      this.#sink.add("wait-early", `${id} was refused ${due - frame.at} ms before its time`);
    }
    if (this.#across.knownFor(this.#tenant, voucher.of, frame.at) === undefined) return;
    this.#sink.add("wait-seen", `${id} is refused for ${voucher.of}, which was seen by then`);
  }

  giveUp(id: string): void {
    if (this.#vouchers.get(id)?.isWaiting === true) this.#drop(id);
  }

  /** The service forgets at its leisure: what is older than this is demanded of nobody. */
  forget(before: number): void {
    for (const [id, { at }] of this.#vouchers) {
      if (at >= before) break;
      this.#drop(id);
      this.#isForgetful = true;
    }
  }
}

function namedBy({ causation_id: cause, evidence_chain: chain }: DomainEvent["envelope"]) {
  return cause ?? chain?.at(-1)?.id;
}
