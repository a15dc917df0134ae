/**
 * A second look at what the logs hold (spec section 8): whether an event is still there, is still what it
 * was when it was folded, and is signed by a key that was good then. Part of reads, never of the fold.
 */
import {
  contentDigest,
  type Domain,
  type Envelope,
  type SignatureFacts,
  type SignatureProblem,
  storedProblem,
} from "@harmovela/envelope";
import type { Known } from "./state.ts";

/** What a read may ask of its host. */
export interface Archive {
  event(seq: number, domain?: Domain): Promise<Envelope | undefined>;
  signature(envelope: Envelope): Promise<SignatureFacts | undefined>;
}

/** Entries of logs that one read asks for at the same time. */
const AT_ONCE = 16;

export type StoredProblem =
  | { readonly result: "gap"; readonly reason: "lost" }
  | { readonly result: "altered"; readonly reason: "content" }
  | {
      readonly result: "unverifiable";
      readonly reason: "signature";
      readonly problem: SignatureProblem;
    };

/** Undefined: it is there, unchanged, and signed if it says so. */
export async function lookAtStored(
  event: Known,
  archive: Archive,
): Promise<StoredProblem | undefined> {
  const { seq, domain, digest } = event;
  const envelope = await archive.event(seq, domain);
  if (envelope === undefined) return { result: "gap", reason: "lost" };
  if (envelope.id !== event.id || contentDigest(envelope) !== digest) {
    return { result: "altered", reason: "content" };
  }
  if (event.trust !== "signed") return undefined;
  const problem = await signatureProblem(event, envelope, archive);
  return problem === undefined
    ? undefined
    : { result: "unverifiable", reason: "signature", problem };
}

async function signatureProblem(
  { createdAt, at, signedBy }: Known,
  envelope: Envelope,
  archive: Archive,
): Promise<SignatureProblem | undefined> {
  // What was verified when it arrived needs no key any more.
  if (signedBy !== undefined) return undefined;
  return storedProblem(await archive.signature(envelope), { createdAt, at });
}

/** The first of these events with which something is wrong, by its place. */
export async function firstProblem(
  events: readonly Known[],
  archive: Archive,
): Promise<{ index: number; problem: StoredProblem } | undefined> {
  for (let from = 0; from < events.length; from += AT_ONCE) {
    const some = events.slice(from, from + AT_ONCE);
    const found = await Promise.all(some.map((event) => lookAtStored(event, archive)));
    for (const [index, problem] of found.entries()) {
      if (problem !== undefined) return { index: from + index, problem };
    }
  }
  return undefined;
}
