/** The log of `provenance` with the logs that it observes; its entries have seen all that is there by then. */
import type { Domain } from "@harmovela/envelope";
import { checkLogs, type Report } from "../src/index.ts";
import { type Draft, LogBuilder, streamOf } from "./log-builder.ts";
import { observed, truncate } from "./provenance-log.ts";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

export class SeenLogs {
  readonly tasks = new LogBuilder("tasks");
  readonly beliefs = new LogBuilder("beliefs");
  readonly interruptions = new LogBuilder("interruptions");
  readonly own = new LogBuilder("provenance");

  constructor() {
    this.own.seen = () => this.#others.map((log) => `${log.domain}:${log.last}`).join(",");
  }

  get #others(): LogBuilder[] {
    return [this.tasks, this.beliefs, this.interruptions];
  }

  /** An assertion of agent:a on a subject of its own name, known by that name too. */
  fact(id: string, fields: Fields = {}): Draft {
    const payload = { fact_id: id, value: 1 };
    return this.beliefs.send("memory.fact.added", "agent:a", { id, payload, ...fields });
  }

  retract(id: string): void {
    const payload = { fact_id: id };
    const status = { belief_status: "retracted" };
    this.beliefs.send("memory.fact.invalidated", "agent:a", { payload, ...status });
  }

  /** The log of `beliefs` begins with the entry that is written next. */
  trim(): void {
    observed(this.own, { beliefs: this.beliefs.last + 1 });
  }

  truncate(assertion: string, missing: string, left = assertion): Draft {
    return truncate(this.own, assertion, {
      payload: { earliest_available: left, missing_from: missing, reason: "retention" },
    });
  }

  /** A verdict that tells so many attestations. */
  attest(of: string, count: number | undefined, source = "agent:v", fields: Fields = {}): Draft {
    const told = count === undefined ? "" : JSON.stringify({ attestation_count: count });
    return this.own.send(
      "provenance.attestation.added",
      source,
      { causation_id: of, payload: { attestor: source, method: "m" }, ...fields },
      { headers: { "Hv-Verdict": told } },
    );
  }

  async check({ settled = false } = {}): Promise<Report[]> {
    const reports = await checkLogs(
      [this.own, ...this.#others].map((log) => ({
        domain: log.domain,
        stream: streamOf(log.domain),
        read: () => log.records(),
      })),
      { settled },
    );
    return [...reports.values()];
  }

  /** `<rule>@<position>` of what the log of `provenance` breaks, and the same of the others with their domain. */
  async findings(options: { settled?: boolean } = {}): Promise<string[]> {
    const reports = await this.check(options);
    const domains: Domain[] = ["provenance", "tasks", "beliefs", "interruptions"];
    return reports.flatMap(({ findings }, index) =>
      findings.map(({ rule, seq }) =>
        index === 0 ? `${rule}@${seq}` : `${domains[index]} ${rule}@${seq}`,
      ),
    );
  }
}

/** Cites facts of agent:a, the last one as the cause. */
export const resting = (...ids: string[]): Fields => ({
  evidence_chain: ids.map((id) => ({ source: "agent:a", id })),
  causation_id: ids.at(-1),
});
