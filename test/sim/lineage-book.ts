/**
 * Reads the log of `provenance` as it is stored, folds it with exactly what its entries have seen of the
 * others, and says from the bare logs what must come out. The counts here know nothing of the service.
 */
import { decodeEntry, logStream, type MemoryServer, type StoredMessage } from "@harmovela/bus";
import { checkLogs, formatRecord, recordOf } from "@harmovela/check";
import type { Decider, Domain, Envelope, EventEntry, LogEntry } from "@harmovela/envelope";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import type { AttesterState } from "@harmovela/provenance-attester";
import type { Watched } from "./chaos.ts";
import { SCRIBED } from "./scribe.ts";

export const STREAM = logStream("provenance");

export class LineageBook implements Watched {
  readonly lines: string[] = [];
  readonly messages: StoredMessage[] = [];
  readonly entries: LogEntry[] = [];
  readonly fold: Fold<AttesterState>;
  readonly #decider: Decider<AttesterState>;
  readonly #server: MemoryServer;
  leader = "";

  constructor(decider: Decider<AttesterState>, server: MemoryServer) {
    this.#decider = decider;
    this.#server = server;
    this.fold = new Fold(decider);
  }

  get lastSeq(): number {
    return this.fold.position;
  }

  /** Attestations wait: a crash may lose them, or the event that they wait for. */
  get isInCascade(): boolean {
    return this.fold.state.waiting.size + this.fold.state.ready.size > 0;
  }

  push(message: StoredMessage): void {
    this.lines.push(formatRecord(recordOf(message)));
    this.messages.push(message);
    const entry = this.#readOne(this.fold, message, SCRIBED);
    if (entry === undefined) return;
    this.entries.push(entry);
    if (entry.kind === "epoch") this.leader = String(entry.body.instance);
  }

  #readOne(
    fold: Fold<AttesterState>,
    message: StoredMessage,
    order: readonly Domain[],
  ): LogEntry | undefined {
    const entry = fold.look(message)?.entry();
    if (entry !== undefined) for (const domain of order) this.#seeUpTo(fold, domain, entry);
    fold.read(message);
    return entry;
  }

  #seeUpTo(fold: Fold<AttesterState>, domain: Domain, { seen }: LogEntry): void {
    const upTo = seen[domain] ?? 0;
    let { position } = fold.observedUpTo(domain);
    if (position >= upTo) return;
    while (position < upTo) {
      position += 1;
      const stored = this.#server.stream(logStream(domain))?.get(position);
      const entry = stored && decodeEntry(stored);
      if (entry === undefined) throw new Error(`no entry ${position} of ${domain} was seen`);
      fold.observe(domain, entry);
    }
    fold.sawUpTo(domain, { position, epoch: 1, prev: position, intake: 0 });
  }

  /** A fold of the whole log, which reads the others in this order between two entries. */
  refold(order: readonly Domain[], record?: ConstructorParameters<typeof Fold>[1], from = 0) {
    const fold = new Fold(this.#decider, record);
    for (const message of this.messages.slice(from)) this.#readOne(fold, message, order);
    return fold;
  }

  async #written(fold: Fold<AttesterState>): Promise<Buffer> {
    const { snapshots } = this.#decider;
    const taken = snapshots && (await cut("provenance", fold, snapshots, async () => true));
    if (!taken) throw new Error("no snapshot was written");
    return taken.text;
  }

  /** A full fold as it is written down, and the same from a snapshot after so many messages. */
  async aroundSnapshot(at: number): Promise<{ full: Buffer; resumed: Buffer }> {
    const { snapshots } = this.#decider;
    if (snapshots === undefined) throw new Error("the service takes no snapshots");
    const before = new Fold(this.#decider);
    for (const message of this.messages.slice(0, at)) this.#readOne(before, message, SCRIBED);
    const data = await instantPacking.pack(await this.#written(before));
    const { record } = await readSnapshot(data, snapshots, instantPacking);
    const resumed = await this.#written(this.refold(SCRIBED, record, at));
    return { full: await this.#written(this.refold(SCRIBED)), resumed };
  }

  /** What the checker finds in the log at rest, read with the others. */
  async findings(): Promise<string[]> {
    const logs = (["provenance", ...SCRIBED] as const).map((domain) => {
      const stream = logStream(domain);
      const read = () => this.#messagesOf(domain).map(recordOf);
      return { domain, stream, read };
    });
    const report = (await checkLogs(logs, { settled: true })).get("provenance");
    return (report?.findings ?? []).map(({ rule, seq, message }) => `${rule}@${seq}: ${message}`);
  }

  #messagesOf(domain: Domain): StoredMessage[] {
    if (domain === "provenance") return this.messages;
    const stream = this.#server.stream(logStream(domain));
    const messages: StoredMessage[] = [];
    for (let seq = 1; seq <= (stream?.lastSeq ?? 0); seq += 1) {
      const stored = stream?.get(seq);
      if (stored !== undefined) messages.push(stored);
    }
    return messages;
  }

  #eventsOf(domain: Domain): EventEntry[] {
    return this.#messagesOf(domain).flatMap((stored) => {
      const entry = decodeEntry(stored);
      return entry?.kind === "event" ? [entry] : [];
    });
  }

  get ownEvents(): Envelope[] {
    return this.entries.flatMap((entry) => (entry.kind === "event" ? [entry.envelope] : []));
  }

  /** Distinct sources that stand by their attestation of each event, told from the bare logs. */
  counts(): Map<string, number> {
    const sources = new Map<string, string>();
    const doubtful = new Set<string>();
    // What was refused is in no log.
    const learn = ({ id, source, type }: Envelope): void => {
      if (type.endsWith(".rejected") && source.startsWith("service:")) return;
      if (sources.has(id)) doubtful.add(id);
      sources.set(id, source);
    };
    for (const domain of SCRIBED) {
      for (const { envelope } of this.#eventsOf(domain)) learn(envelope);
    }
    const own = this.ownEvents;
    for (const envelope of own) learn(envelope);
    const revoked = new Set(own.filter(isRevocation).map(({ causation_id: of }) => of));
    const standing = new Map<string, Set<string>>();
    for (const { type, id, source, causation_id: of = "" } of own) {
      if (type !== "provenance.attestation.added" || revoked.has(id)) continue;
      if (sources.get(of) === source) continue;
      standing.set(of, (standing.get(of) ?? new Set()).add(source));
    }
    return new Map(
      [...sources.keys()]
        .filter((id) => !doubtful.has(id))
        .map((id) => [id, standing.get(id)?.size ?? 0]),
    );
  }
}

function isRevocation({ type }: Envelope): boolean {
  return type === "provenance.attestation.revoked";
}
