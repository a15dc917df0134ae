/**
 * Gives a target inputs, keeps those that reach something new, and finds what breaks a promise.
 *
 * Z1 The same seed makes the same inputs as long as the same things are reached.
 * Z2 A finding is a list of inputs for a fresh session, as few and as short as could be made.
 */
import { SimRandom } from "@harmovela/testkit";
import { Corpus } from "./corpus.ts";
import type { Coverage } from "./coverage.ts";
import type { Input } from "./input.ts";
import { shrink } from "./shrink.ts";
import { Broken, type Session, type Target } from "./target.ts";

export interface RunOptions {
  seed: number;
  /** Ends after so many inputs … */
  executions: number;
  /** … or after so long. */
  ms: number;
  coverage?: Coverage;
  shrinkTries?: number;
  onProgress?(report: Report): void;
  /** Called before it is made smaller. */
  onFound?(what: string): void;
}

export interface Finding {
  target: string;
  /** The promise that is broken. */
  what: string;
  /** Of the sessions. */
  seed: number;
  inputs: readonly Input[];
}

export interface Report {
  target: string;
  executions: number;
  sessions: number;
  outcomes: number;
  corpus: number;
  blocks: number;
  ms: number;
  findings: Finding[];
  tally: [string, number][];
}

const SHRINK_TRIES = 400;
const SHRINK_MS = 60_000;
/** Different findings; then there is enough to mend. */
const FINDINGS_MAX = 20;
/** How often a fresh input is made instead of changing one that is known. */
const FRESH = 0.25;
const CHANGES_MAX = 4;

/** Runs one target; the findings are in the report. */
export async function fuzz(target: Target, options: RunOptions): Promise<Report> {
  return new Run(target, options).run();
}

/** Gives inputs to a fresh session and looks at it as a whole; the promise that they break, if any. */
export async function breakageOf(
  target: Target,
  inputs: readonly Input[],
  seed: number,
): Promise<string | undefined> {
  const session = await target.open(seed);
  try {
    for (let at = 0; at < inputs.length; at += target.batch) {
      await session.run(inputs.slice(at, at + target.batch));
    }
    await session.check();
    return undefined;
  } catch (error) {
    return whatOf(error);
  } finally {
    await session.close();
  }
}

/** Anything that is thrown is a finding; of a stranger's error the first line says what it is. */
function whatOf(error: unknown): string {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const text = error instanceof Broken ? message : `thrown: ${name}: ${message}`;
  return (text.split("\n")[0] ?? "").slice(0, 300);
}

/** Numbers and what is quoted differ from input to input. */
const kindOf = (what: string): string => what.replace(/"[^"]*"|\d+/g, "#").slice(0, 120);

class Run {
  readonly #target: Target;
  readonly #options: RunOptions;
  readonly #random: SimRandom;
  readonly #corpus = new Corpus();
  readonly #findings = new Map<string, Finding>();
  readonly #started = performance.now();
  #executions = 0;
  #sessions = 0;

  constructor(target: Target, options: RunOptions) {
    this.#target = target;
    this.#options = options;
    this.#random = new SimRandom(options.seed);
  }

  async run(): Promise<Report> {
    while (!this.#isOver) {
      this.#sessions += 1;
      const given: Input[] = [];
      const session = await this.#target.open(this.#options.seed);
      try {
        await this.#live(session, given);
      } catch (error) {
        await this.#found(error, given);
      } finally {
        await session.close();
      }
    }
    return this.report;
  }

  get #isOver(): boolean {
    const { executions, ms } = this.#options;
    const isOld = performance.now() - this.#started >= ms;
    return isOld || this.#executions >= executions || this.#findings.size >= FINDINGS_MAX;
  }

  async #live(session: Session, given: Input[]): Promise<void> {
    while (!this.#isOver && given.length < this.#target.sessionInputs) {
      const inputs = Array.from({ length: this.#target.batch }, () => this.#next());
      given.push(...inputs);
      this.#executions += inputs.length;
      const features = await session.run(inputs);
      const news = (await this.#options.coverage?.news()) ?? 0;
      this.#corpus.learn(inputs, features, news, this.#random);
      this.#options.onProgress?.(this.report);
    }
    await session.check();
  }

  #next(): Input {
    const random = this.#random;
    const known = random.chance(FRESH) ? undefined : this.#corpus.pick(random);
    let input = known ?? this.#target.seed(random);
    if (known === undefined && random.chance(0.5)) return input;
    for (let count = random.whole(1, CHANGES_MAX); count > 0; count -= 1) {
      input = this.#target.mutate(input, this.#corpus.pick(random) ?? input, random);
    }
    return input;
  }

  /** Z2. */
  async #found(error: unknown, given: readonly Input[]): Promise<void> {
    const what = whatOf(error);
    const kind = kindOf(what);
    if (this.#findings.has(kind)) return;
    const { batch, name } = this.#target;
    this.#options.onFound?.(what);
    const { seed } = this.#options;
    this.#findings.set(kind, { target: name, what, seed, inputs: given });
    const breaks = async (inputs: readonly Input[]): Promise<boolean> => {
      const found = await breakageOf(this.#target, inputs, seed);
      return found !== undefined && kindOf(found) === kind;
    };
    const last = given.slice(-batch);
    const culprit =
      error instanceof Broken && error.index !== undefined ? last[error.index] : undefined;
    for (const candidate of [...(culprit === undefined ? [] : [[culprit]]), last, given]) {
      if (!(await breaks(candidate))) continue;
      const inputs = await shrink(candidate, breaks, {
        tries: this.#options.shrinkTries ?? SHRINK_TRIES,
        ms: SHRINK_MS,
        now: () => performance.now(),
      });
      this.#findings.set(kind, { target: name, what, seed, inputs });
      return;
    }
  }

  get report(): Report {
    return {
      target: this.#target.name,
      executions: this.#executions,
      sessions: this.#sessions,
      outcomes: this.#corpus.outcomes,
      corpus: this.#corpus.size,
      blocks: this.#options.coverage?.size ?? 0,
      ms: performance.now() - this.#started,
      findings: [...this.#findings.values()],
      tally: this.#corpus.tally(),
    };
  }
}
