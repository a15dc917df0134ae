import type { DomainEvent } from "../domain-event.ts";
import type { FindingSink } from "../finding.ts";
import { isObject } from "../record.ts";
import type { ProvenanceSettings } from "./settings.ts";

interface Voucher {
  source: string;
  at: number;
  /** It waits for what it speaks of, since then. */
  isWaiting: boolean;
  revokedBy: string | undefined;
}

/** Who vouches for what in one tenant, and what was taken back (spec section 8). */
export class Vouching {
  readonly #sink: FindingSink;
  readonly #settings: ProvenanceSettings;
  /** By the id of the attestation, the oldest first. */
  readonly #vouchers = new Map<string, Voucher>();
  /** Assertions that the service has told of. */
  readonly #truncated = new Map<string, number>();
  /** Something may be known that stands here no longer. */
  #isForgetful: boolean;

  constructor(sink: FindingSink, settings: ProvenanceSettings, isLenient: boolean) {
    this.#sink = sink;
    this.#settings = settings;
    this.#isForgetful = isLenient;
  }

  attest({ envelope, frame }: DomainEvent): void {
    const waited = this.#vouchers.get(envelope.id);
    if (waited !== undefined) waited.isWaiting = false;
    else this.#add(envelope.id, envelope.source, frame.at, false);
  }

  wait({ envelope, frame }: DomainEvent): void {
    this.#add(envelope.id, envelope.source, frame.at, true);
  }

  #add(id: string, source: string, at: number, isWaiting: boolean): void {
    this.#vouchers.set(id, { source, at, isWaiting, revokedBy: undefined });
  }

  revoke({ envelope }: DomainEvent): void {
    const id = envelope.causation_id ?? envelope.evidence_chain?.at(-1)?.id;
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
    if (source !== envelope.source && !this.#settings.authorities.includes(envelope.source)) {
      this.#sink.add("revocation-party", `${envelope.source} revokes what ${source} attested`);
    }
    voucher.revokedBy ??= envelope.id;
  }

  /** A plan ended without its attestation. */
  refuse({ frame }: DomainEvent, id: string, isNeverSeen: boolean): void {
    const voucher = this.#vouchers.get(id);
    this.#vouchers.delete(id);
    if (voucher === undefined || !isNeverSeen) return;
    const due = voucher.at + this.#settings.evidenceWaitMs;
    if (frame.at < due) {
      this.#sink.add("wait-early", `${id} was refused ${due - frame.at} ms before its time`);
    }
  }

  giveUp(id: string): void {
    if (this.#vouchers.get(id)?.isWaiting === true) this.#vouchers.delete(id);
  }

  truncated({ envelope, frame }: DomainEvent, isOwed: boolean): void {
    const assertion = envelope.causation_id ?? envelope.evidence_chain?.at(-1)?.id;
    const missing = isObject(envelope.payload) ? envelope.payload.missing_from : undefined;
    if (isOwed && (assertion === undefined || typeof missing !== "string" || missing === "")) {
      this.#sink.add("truncation-fields", `${envelope.id} does not say what of what is missing`);
    }
    if (assertion === undefined) return;
    if (isOwed && this.#truncated.has(assertion)) {
      this.#sink.add("truncation-twice", `${assertion} was told of before`);
    }
    this.#truncated.set(assertion, frame.at);
  }

  /** The service forgets at its leisure: what is older than this is demanded of nobody. */
  forget(before: number): void {
    for (const [id, { at }] of this.#vouchers) {
      if (at >= before) break;
      this.#vouchers.delete(id);
      this.#isForgetful = true;
    }
    for (const [id, at] of this.#truncated) {
      if (at >= before) break;
      this.#truncated.delete(id);
    }
  }
}
