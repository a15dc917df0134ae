/**
 * Hostile input, in short: a fixed number of inputs for each target, and everything that broke a promise once.
 * `npm run fuzz` goes on for as long as it is told.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { storedCases } from "./cases.ts";
import { Coverage } from "./coverage.ts";
import { breakageOf, fuzz } from "./fuzz-run.ts";
import type { Input } from "./input.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { Broken, type Session, type Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

/** About a second each. */
const EXECUTIONS: Readonly<Record<string, number>> = {
  intake: 192,
  subjects: 4_096,
  keys: 320,
  reads: 256,
};
const MS_MAX = 120_000;
const seed = Number(process.env.HARMOVELA_FUZZ_SEED ?? 1 + Math.floor(Math.random() * 1e9));

describe("hostile input (HARMOVELA_FUZZ_SEED repeats a run)", () => {
  for (const target of TARGETS) {
    test(`${target.name}, seed ${seed}`, async () => {
      const executions = EXECUTIONS[target.name] ?? 0;
      const report = await fuzz(target, { seed, executions, ms: MS_MAX, shrinkTries: 100 });
      assert.deepEqual(report.findings, []);
      assert.ok(report.executions >= executions, `${report.executions} executions`);
      assert.ok(report.outcomes >= 10, `${report.outcomes} outcomes`);
    });
  }
});

describe("what broke a promise once", () => {
  for (const { name, target, what, seed: of, inputs } of storedCases()) {
    test(`${name}: ${what}`, async () => {
      const known = TARGETS.find((each) => each.name === target);
      assert.ok(known !== undefined, target);
      assert.equal(await breakageOf(known, inputs, of), undefined);
    });
  }
});

/** Breaks at three bytes in order, each of which is a branch of its own. */
function flawed(flaw: (text: string) => string): Target {
  const session: Session = {
    run: async (inputs) => inputs.map(({ text = "" }) => flaw(text)),
    check: async () => {},
    close: async () => {},
  };
  return {
    name: "flawed",
    batch: 16,
    sessionInputs: 1_024,
    seed: () => ({ text: "abcdefgh" }),
    mutate: (input, other, random): Input => ({
      text: mutateBytes(input.text ?? "", other.text ?? "", random, 64),
    }),
    open: async () => session,
  };
}

describe("the fuzzer itself", () => {
  const stepwise = (text: string): string => {
    if (!text.includes('"')) return "no quote";
    if (!text.includes("\\")) return "a quote";
    if (text.includes("__proto__")) throw new Broken("a key that is none");
    return "a quote and an escape";
  };

  test("keeps what was new, gets from there to the fault, and makes it small", async () => {
    const options = { seed: 5, executions: 100_000, ms: MS_MAX };
    const { findings, outcomes } = await fuzz(flawed(stepwise), options);
    assert.equal(outcomes, 3);
    const [found, ...more] = findings;
    assert.deepEqual(more, []);
    assert.equal(found?.what, "a key that is none");
    assert.equal(found.inputs.length, 1);
    const [text = ""] = found.inputs.map((input) => input.text);
    assert.deepEqual([...text].sort(), [...'"\\__proto__'].sort());
  });

  test("the same seed makes the same inputs", async () => {
    const given = async (from: number): Promise<string[]> => {
      const texts: string[] = [];
      const noting = (text: string): string => {
        texts.push(text);
        return text.slice(0, 1);
      };
      await fuzz(flawed(noting), { seed: from, executions: 500, ms: MS_MAX });
      return texts;
    };
    assert.deepEqual(await given(7), await given(7));
    assert.notDeepEqual(await given(7), await given(8));
  });

  test("a fault that only several inputs together make is found as these", async () => {
    let marks = 0;
    const target = flawed(() => "");
    const counting: Target = {
      ...target,
      open: async () => {
        marks = 0;
        return {
          run: async (inputs) =>
            inputs.map(({ text = "" }) => {
              if (text.includes("{")) marks += 1;
              if (marks >= 3) throw new Broken("one too many");
              return String(marks);
            }),
          check: async () => {},
          close: async () => {},
        };
      },
    };
    const { findings } = await fuzz(counting, { seed: 3, executions: 20_000, ms: MS_MAX });
    const texts = findings[0]?.inputs.map(({ text }) => text);
    assert.deepEqual(texts, ["{", "{", "{"]);
  });

  test("what an input reaches for the first time is news, and no news the next time", async () => {
    const subjects = TARGETS.find(({ name }) => name === "subjects");
    assert.ok(subjects !== undefined);
    const coverage = new Coverage();
    await coverage.start();
    try {
      const inputs = [{ kind: "reply", reply: "_INBOX.a", prefix: "_INBOX." }];
      await breakageOf(subjects, inputs, 1);
      assert.ok((await coverage.news()) > 0);
      await breakageOf(subjects, inputs, 1);
      assert.equal(await coverage.news(), 0);
    } finally {
      await coverage.stop();
    }
  });
});
