import type { Envelope } from "@harmovela/envelope";
import type { Move } from "./generated.ts";

interface Held {
  end: number;
  due: number;
  created: number;
  isTold: boolean;
}

/** Which ends of which resources must have been told, from what was accepted (spec 6.2). */
export class ExpectedEnds {
  readonly told: string[] = [];
  readonly #known = new Set<string>();
  /** By resource, then by source. */
  readonly #held = new Map<string, Map<string, Held>>();

  pass(now: number): void {
    for (const [resource, claims] of this.#held) {
      const due = [...claims.values()].filter((held) => !held.isTold && held.due <= now);
      for (const end of new Set(due.map((held) => held.end))) {
        this.told.push(`${resource} ${end}`);
        this.#known.add(`${resource} ${end}`);
        for (const held of claims.values()) if (held.end === end) held.isTold = true;
      }
    }
  }

  apply(now: Move, sent: Envelope, at: number): void {
    const key = "fact" in now ? `memory:${now.fact}` : "";
    const claims = this.#held.get(key) ?? new Map<string, Held>();
    this.#held.set(key, claims);
    const own = claims.get(sent.source);
    const created = Date.parse(sent.created_at);
    if (now.do === "assert") {
      const { valid_until: until } = sent;
      const end = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
      const isTold = end <= at && this.#known.has(`${key} ${end}`);
      claims.set(sent.source, { end, due: Math.max(end, at), created, isTold });
    } else if (now.do === "change") {
      if (own === undefined || created < own.created) return;
      const end = at + now.until;
      const isTold = end <= at && own.end === end && this.#known.has(`${key} ${end}`);
      claims.set(sent.source, { end, due: Math.max(end, at), created, isTold });
    } else claims.delete(sent.source);
  }
}
