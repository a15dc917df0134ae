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

/** What a request's window may be exceeded by before its refusal counts as missing. */
const LATE_MS_MAX = 3_000;
const WINDOW_MS = 5_000;
/** Longer windows are not waited for. */
export const REQUEST_MS_MAX = 60_000;

/**
 * Judges the lines one after the other in a fresh stack, and takes it down again. With `late` it also
 * waits for refusals that the window of a command or query brings (spec 5.9).
 */
export async function runLines(
  lines: readonly SourceLine[],
  options: { late: boolean },
): Promise<FileRun> {
  const stack = await openStack({ externalTasks: true, processIdentity: true });
  try {
    const bus = await connectBus({ servers: stack.url, name: "harmovela conformance" });
    const output: string[] = [];
    const refused = new Map<string, Envelope>();
    const session = new IntakeSession(bus, {
      tenant: tenantOf(lines),
      from: new Map(DOMAINS.map((domain) => [domain, 0])),
      onOutput: (_bytes, envelope) => {
        output.push(envelope.type);
        const { acknowledged_event_id: id } = (envelope.payload ?? {}) as JsonObject;
        if (envelope.type.endsWith(".rejected") && typeof id === "string") {
          refused.set(id, envelope);
        }
      },
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
    if (options.late) await applyLateRefusals(lines, results, refused);
    await session.close();
    await bus.close();
    return { lines: results, output };
  } finally {
    await stack.close();
  }
}

/** A request that was taken may be refused when its window ends. */
async function applyLateRefusals(
  lines: readonly SourceLine[],
  results: LineResult[],
  refused: ReadonlyMap<string, Envelope>,
): Promise<void> {
  for (const [at, result] of results.entries()) {
    if (!/^(command|query)\.requested$/.test(result.type) || result.refusal !== undefined) continue;
    const request = lines[at]?.json?.value as
      | (Pick<Envelope, "id" | "correlation_id"> & { payload?: JsonObject })
      | undefined;
    if (request === undefined) continue;
    const window = Number(request.payload?.negotiation_window_ms ?? WINDOW_MS);
    const until = performance.now() + Math.min(window, REQUEST_MS_MAX) + LATE_MS_MAX;
    const isAnswered = lines.some(({ json }) => isAnswerTo(json?.value, request));
    while (!isAnswered && !refused.has(request.id) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const rejection = refused.get(request.id);
    if (rejection !== undefined) results[at] = toResult(result.number, request, rejection);
  }
}

/** Whether a line answers the request, an echo included (spec 5.9). */
function isAnswerTo(value: unknown, request: Partial<Envelope>): boolean {
  const { type, correlation_id: name } = (value ?? {}) as Partial<Envelope>;
  const isAnswer = typeof type === "string" && /^(?:command|query)\.(?!requested$)/.test(type);
  return isAnswer && name === request.correlation_id;
}

/** The tenant of a run: what the first readable line names. */
export function tenantOf(lines: readonly SourceLine[]): string {
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
