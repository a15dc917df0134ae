/** Random histories: few names, so that they meet. */
import type { Envelope } from "@harmovela/envelope";
import fc from "fast-check";
import {
  event,
  type Fields,
  fact,
  iso,
  NOW,
  resting,
  retract,
  type World,
  windowChanged,
} from "./support.ts";

export const FACTS = ["f0", "f1", "f2", "f3", "f4", "__proto__"];
export const SOURCES = ["agent:a", "agent:b", "agent:c"];

export type Move =
  | {
      do: "assert";
      fact: string;
      by: string;
      value: number;
      after: number;
      until: number | undefined;
      on: number[];
    }
  | { do: "retract"; fact: string; by: string; isRetracted: boolean }
  | { do: "invalidate"; fact: string; by: string }
  | { do: "change"; fact: string; by: string; until: number; sent: number }
  | { do: "wait"; ms: number }
  | { do: "step" };

const name = fc.constantFrom(...FACTS);
const by = fc.constantFrom(...SOURCES);
const span = fc.constantFrom(-5, 0, 1, 10, 50, 200);

export const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("assert" as const),
      fact: name,
      by,
      value: fc.nat(1),
      after: fc.nat(3),
      until: fc.option(span, { nil: undefined }),
      on: fc.array(fc.nat(12), { maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("retract" as const),
      fact: name,
      by,
      isRetracted: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("invalidate" as const), fact: name, by }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      fact: name,
      by,
      until: span,
      sent: fc.constantFrom(-10, 0, 0, 1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 7, 60, 300) }),
  },
  { weight: 6, arbitrary: fc.constant({ do: "step" as const }) },
);

export const history: fc.Arbitrary<Move[]> = fc.array(move, {
  minLength: 10,
  maxLength: 60,
  size: "max",
});

/** The envelope of a move, sent at the scenario's time; cites events that are so many places back, or to come. */
export function envelopeOf(scenario: World, now: Move, place: number): Envelope | undefined {
  const id = `e${place}`;
  const at = scenario.now;
  switch (now.do) {
    case "assert": {
      const until: Fields = now.until === undefined ? {} : { valid_until: iso(at + now.until) };
      const evidence = now.on.map((back) => `e${Math.max(0, place - back + 2)}`);
      const rests = evidence.length === 0 ? {} : resting(...evidence);
      const common = { id, source: now.by, created_at: iso(at), ...until, ...rests };
      return fact(now.fact, now.value, common);
    }
    case "retract": {
      const status: Fields = now.isRetracted ? {} : { belief_status: "asserted" };
      return retract(now.fact, { id, source: now.by, created_at: iso(at), ...status });
    }
    case "invalidate":
      return event(
        "state.invalidated",
        { resource: `memory:${now.fact}` },
        { id, source: now.by, created_at: iso(at) },
      );
    case "change": {
      const payload = { new_valid_until: iso(at + now.until) };
      const sent = { id, source: now.by, created_at: iso(at + now.sent) };
      return windowChanged(`memory:${now.fact}`, payload, sent);
    }
    default:
      return undefined;
  }
}

/** Lets a history happen; what is owed is worked off only by its steps. */
export function live(scenario: World, moves: readonly Move[], onMove?: () => void): World {
  for (const [place, now] of moves.entries()) {
    if (now.do === "wait") scenario.wait(now.ms);
    else if (now.do === "step") {
      scenario.owed();
      scenario.step();
    } else {
      const envelope = envelopeOf(scenario, now, place);
      if (envelope !== undefined) scenario.judge(envelope);
    }
    onMove?.();
  }
  return scenario;
}

export const FAR = NOW + 1e9;
