import { type Envelope, parseInstant } from "@harmovela/envelope";
import type { FindingSink } from "../finding.ts";
import type { SeenEvent } from "./events.ts";

/** Clocks of agents may differ by as much, ms (spec 7, check 6). */
const SKEW_MS = 60_000;

/** What no later event can mend in the evidence of an event is refused on arrival (spec section 8). */
export function checkChain(
  sink: FindingSink,
  find: (id: string) => SeenEvent | undefined,
  envelope: Envelope,
): void {
  const { id, evidence_chain: chain } = envelope;
  const add = (message: string): void => {
    sink.add("chain-contradicts", `in the evidence of ${id} ${message}`);
  };
  const links = chain ?? [];
  for (const [index, link] of links.entries()) {
    const event = find(link.id);
    if (event === undefined || event.isAmbiguous) continue;
    const { digest } = link;
    if (link.source !== event.source) add(`${link.id} is said to be of another source`);
    else if (typeof digest === "string" && digest !== event.digest) {
      add(`${link.id} is said to hold something else`);
    }
    const before = links[index - 1];
    const earlier = before === undefined ? undefined : find(before.id);
    const follows = event.links.length === 0 || event.links.includes(before?.id ?? "");
    if (earlier !== undefined && follows && event.createdAt < earlier.createdAt - SKEW_MS) {
      add(`${link.id} is older than what comes before it`);
    }
    const isLast = index === links.length - 1;
    if (isLast && follows && parseInstant(envelope.created_at) < event.createdAt - SKEW_MS) {
      add(`${link.id} is younger than the event itself`);
    }
  }
}
