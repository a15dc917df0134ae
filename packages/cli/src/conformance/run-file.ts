/** One file through the real services, in a store of its own. */
import { connectBus, DOMAINS } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { DEFAULT_TENANT } from "../options.ts";
import { openStack } from "../stack/stack.ts";
import { lenientJson, tenantIn } from "../stdio/address.ts";
import { refusalOfBytes } from "../stdio/refusal-here.ts";
import { IntakeSession } from "../stdio/session.ts";

/** What became of one line. */
export interface LineResult {
  /** From 1, blank lines not counted. */
  number: number;
  type: string;
  /** The answer's type; undefined for families that get none. */
  answer: string | undefined;
  /** Why it was refused; undefined when it was not. */
  refusal: { code: string; category: string } | undefined;
}

export interface FileRun {
  lines: LineResult[];
  /** Types of everything that came out, in order. */
  output: string[];
}

/** A line as it is sent and as it can be read. */
export interface SourceLine {
  bytes: Uint8Array;
  json: { value: unknown } | undefined;
}

/** The lines of a file that are not blank. */
export function toLines(text: string): SourceLine[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const bytes = new TextEncoder().encode(line);
      return { bytes, json: lenientJson(bytes) };
    });
}

/** Judges the lines one after the other in a fresh stack, and takes it down again. */
export async function runLines(lines: readonly SourceLine[]): Promise<FileRun> {
  const stack = await openStack();
  try {
    const bus = await connectBus({ servers: stack.url, name: "harmovela conformance" });
    const output: string[] = [];
    const session = new IntakeSession(bus, {
      tenant: tenantOf(lines),
      from: new Map(DOMAINS.map((domain) => [domain, 0])),
      onOutput: (_bytes, { type }) => output.push(type),
      onRefusedHere: ({ type }) => output.push(type),
    });
    const results: LineResult[] = [];
    for (const { bytes, json } of lines) {
      const verdict =
        json === undefined
          ? refusalOfBytes(bytes)
          : (await session.feed(bytes, json.value)).verdict;
      results.push(toResult(results.length + 1, json?.value, verdict));
    }
    await session.close();
    await bus.close();
    return { lines: results, output };
  } finally {
    await stack.close();
  }
}

function tenantOf(lines: readonly SourceLine[]): string {
  const first = lines.find((line) => line.json !== undefined);
  return tenantIn(first?.json?.value) ?? DEFAULT_TENANT;
}

function toResult(number: number, value: unknown, verdict: Envelope | undefined): LineResult {
  const type = (value as { type?: unknown } | null | undefined)?.type;
  return {
    number,
    type: typeof type === "string" ? type : "-",
    answer: verdict?.type,
    refusal: verdict?.type.endsWith(".rejected") ? refusalIn(verdict) : undefined,
  };
}

function refusalIn({ payload }: Envelope): { code: string; category: string } {
  const error = (payload as JsonObject).error as JsonObject | undefined;
  const details = error?.details as JsonObject | undefined;
  const failure = details?.failure as JsonObject | undefined;
  return { code: String(error?.code), category: String(failure?.category) };
}
