import type { Envelope } from "@harmovela/envelope";
import type { FindingSink } from "./finding.ts";
import type { Frame } from "./frame.ts";
import { IdMemory } from "./id-memory.ts";
import { isObject } from "./record.ts";
import type { LogSubject } from "./subject.ts";

/** Ids that services derive (architecture, section 2): ULID form with an own prefix. */
const DERIVED = /^hv_[0-9A-HJKMNP-TV-Z]{26}$/;

const REFUSALS = new Set([
  "event.rejected",
  "command.rejected",
  "query.rejected",
  "subscription.rejected",
]);

export const isService = (source: string): boolean => source.startsWith("service:");

/** The rules of every event entry whatever its type: stamps, identity, ids, refusals. */
export class EventRules {
  readonly #sink: FindingSink;
  readonly #stream: string;
  readonly #service: string;
  readonly #lenient: boolean;
  readonly #sequences = new Map<string, number>();
  readonly #ids = new IdMemory();
  refusals = 0;

  constructor(sink: FindingSink, stream: string, service: string, lenient: boolean) {
    this.#sink = sink;
    this.#stream = stream;
    this.#service = service;
    this.#lenient = lenient;
  }

  get tenants(): number {
    return this.#sequences.size;
  }

  checkSubject(subject: LogSubject & { area: "log" }, envelope: Envelope): void {
    const said: [string, string | undefined, string | undefined][] = [
      ["source", subject.source, envelope.source],
      ["target", subject.target, envelope.target],
      ["type", subject.type, envelope.type],
      ["tenant", subject.tenant, envelope.tenant_id ?? subject.tenant],
    ];
    for (const [name, token, field] of said) {
      if (token === field) continue;
      this.#sink.add(
        "subject-disagrees",
        `${name} ${token ?? "-"} with ${field ?? "-"} in the body`,
      );
    }
  }

  checkStamps(tenant: string, envelope: Envelope, seq: number): void {
    const cursor = envelope.delivery?.cursor;
    if (cursor !== `${this.#stream}:${seq}`) {
      this.#sink.add("cursor-wrong", `cursor ${String(cursor)} of entry ${this.#stream}:${seq}`);
    }
    const last = this.#sequences.get(tenant);
    const sequence = envelope.delivery?.sequence;
    const expected = last === undefined ? (this.#lenient ? sequence : 1) : last + 1;
    if (sequence === undefined || sequence !== expected) {
      this.#sink.add(
        "sequence-gap",
        `delivery.sequence ${sequence} where ${expected} was expected`,
      );
    }
    this.#sequences.set(tenant, sequence ?? (last ?? 0) + 1);
  }

  /** An event that cannot be read still takes its number. */
  skipStamps(tenant: string): void {
    this.#sequences.set(tenant, (this.#sequences.get(tenant) ?? 0) + 1);
  }

  /** Who may use which form of id for what. `isFinal`: the event that ends a begun plan. */
  checkIdentity(frame: Frame, envelope: Envelope, isFinal: boolean): void {
    const isDerived = DERIVED.test(envelope.id);
    const isOwed = frame.cause !== undefined && "owed" in frame.cause;
    if (isOwed && !isFinal) {
      if (!isDerived) this.#sink.add("id-derived-form", `owed event has the id ${envelope.id}`);
      if (!isService(envelope.source)) {
        this.#sink.add("owed-source", `owed event comes from ${envelope.source}`);
      }
    }
    if (isOwed) return;
    if (isDerived && !isService(envelope.source)) {
      this.#sink.add("id-agent-form", `${envelope.source} uses the derived id ${envelope.id}`);
    }
    if (!isDerived && envelope.source === this.#service) {
      this.#sink.add("id-derived-form", `the service's own event has the id ${envelope.id}`);
    }
  }

  /** An id becomes used by an accepted event or by a begun plan, and once only. */
  claimId(tenant: string, id: string, at: number): void {
    const use = this.#ids.use(tenant, id, at);
    if (use === "accepted") this.#sink.add("id-duplicate", `${id} has been accepted before`);
    if (use === "refused") this.#sink.add("id-refused", `${id} is occupied by a refusal`);
    this.#ids.add(tenant, id, "accepted", at);
  }

  /** A refusal of the service: whom, what and why; with a digest it occupies the refused id. */
  checkRefusal(tenant: string, frame: Frame, envelope: Envelope): boolean {
    const isOwn = isService(envelope.source) && DERIVED.test(envelope.id);
    if (!isOwn || !REFUSALS.has(envelope.type)) return false;
    if (frame.cause === undefined || "owed" in frame.cause) return false;
    this.refusals += 1;
    const { payload } = envelope;
    const error = isObject(payload) && isObject(payload.error) ? payload.error : {};
    const isWhole =
      typeof error.code === "string" &&
      typeof error.message === "string" &&
      typeof error.retryable === "boolean";
    if (!isWhole) this.#sink.add("refusal-form", "the error lacks code, message or retryable");
    if (envelope.target === undefined) this.#sink.add("refusal-form", "no offender as target");
    const refused = isObject(payload) ? payload.acknowledged_event_id : undefined;
    if (refused !== undefined && refused !== envelope.causation_id) {
      this.#sink.add("refusal-form", "acknowledged_event_id differs from causation_id");
    }
    const id = envelope.causation_id;
    const occupies = frame.digest !== undefined && error.retryable === false;
    if (id !== undefined && occupies && this.#ids.use(tenant, id, frame.at) === undefined) {
      this.#ids.add(tenant, id, "refused", frame.at);
    }
    return true;
  }
}
