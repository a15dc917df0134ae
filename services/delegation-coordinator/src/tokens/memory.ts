/**
 * Handoff tokens that were used or are void, by their `jti`; a part of the state (spec 7, check 5).
 *
 * M1 A `jti` is remembered for longer than its token can live.
 */
import type { Instant } from "@harmovela/envelope";
import { Heap } from "../heap.ts";
import { SKEW_MS_MAX } from "./claims.ts";

export interface KnownToken {
  /** When it is forgotten. */
  readonly due: Instant;
  readonly order: number;
  index: number;
  readonly tenant: string;
  readonly jti: string;
  /** The handoff that used it up; none when it is void without ever having been used. */
  readonly spentBy: { id: string; seq: number } | undefined;
}

export interface TokenMemory {
  readonly tenant: string;
  readonly known: Map<string, KnownToken>;
  /** Those of all tenants. */
  readonly oldest: Heap<KnownToken>;
}

export function createTokenMemory(
  tenant: string,
  oldest: Heap<KnownToken> = new Heap(),
): TokenMemory {
  return { tenant, known: new Map(), oldest };
}

/** Remembers a token until it has expired for everybody; a second time changes nothing (M1). */
export function rememberToken(
  memory: TokenMemory,
  token: { jti: string; exp: Instant },
  seq: number,
  spentBy?: string,
): void {
  if (memory.known.has(token.jti)) return;
  const known: KnownToken = {
    due: token.exp + SKEW_MS_MAX,
    order: seq,
    index: -1,
    tenant: memory.tenant,
    jti: token.jti,
    spentBy: spentBy === undefined ? undefined : { id: spentBy, seq },
  };
  memory.known.set(token.jti, known);
  memory.oldest.add(known);
}
