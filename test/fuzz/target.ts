/** What is fuzzed, and what it promises. */
import type { SimRandom } from "@harmovela/testkit";
import type { Input } from "./input.ts";

/** A promise that an input broke. `what` names the kind, so that the same one is reported once. */
export class Broken extends Error {
  override readonly name = "Broken";
  /** Which input of the batch it was, where that is known. */
  readonly index: number | undefined;

  constructor(what: string, index?: number, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.index = index;
  }
}

/** A living system under test; it may remember what it was given. */
export interface Session {
  /** What came of each input, in as few different words as there are different outcomes. Throws Broken. */
  run(inputs: readonly Input[]): Promise<string[]>;
  /** Looks at everything that was given to it so far. Throws Broken. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export interface Target {
  name: string;
  /** Inputs that are given together. */
  batch: number;
  /** Inputs after which a session is looked at as a whole and another one begins. */
  sessionInputs: number;
  /** A well-formed input, or nearly. */
  seed(random: SimRandom): Input;
  /** A changed copy; `other` is a further input to take pieces from. */
  mutate(input: Input, other: Input, random: SimRandom): Input;
  open(seed: number): Promise<Session>;
}
