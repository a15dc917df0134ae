/** Folds stored logs from their beginning, as a restart does. */
import { decodeFrame, type StoredMessage } from "@harmovela/bus";
import type { Decider, Domain } from "@harmovela/envelope";
import { Fold } from "@harmovela/host";

type Seen = Readonly<Partial<Record<Domain, number>>>;

export class Refold<State> {
  readonly fold: Fold<State>;
  readonly #logs: ReadonlyMap<Domain, readonly StoredMessage[]>;

  constructor(decider: Decider<State>, logs: ReadonlyMap<Domain, readonly StoredMessage[]>) {
    this.fold = new Fold(decider);
    this.#logs = logs;
  }

  /** The own log; then what its leader had seen of the others beyond the last entry. */
  read(messages: readonly StoredMessage[], seen: Seen): void {
    for (const message of messages) {
      this.#see(decodeFrame(message)?.frame.seen ?? {});
      this.fold.read(message);
    }
    this.#see(seen);
  }

  #see(seen: Seen): void {
    for (const [name, upTo] of Object.entries(seen)) {
      const domain = name as Domain;
      const { position } = this.fold.observedUpTo(domain);
      for (const message of (this.#logs.get(domain) ?? []).slice(position, upTo)) {
        const framed = decodeFrame(message);
        const entry = framed?.entry();
        if (framed === undefined || entry === undefined) continue;
        this.fold.observe(domain, entry);
        const { seq, epoch } = framed.frame;
        this.fold.sawUpTo(domain, { position: message.seq, epoch, prev: seq, intake: 0 });
      }
    }
  }
}
