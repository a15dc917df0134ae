/** Knows when a stack has come to rest: every intake judged, every log stored, nothing due now. */
import { type Bus, intakeStream, rpcSubject } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import type { HostStatus } from "@harmovela/host";

const ASK_MS = 5_000;
const PAUSE_MS_MAX = 50;

/** The end of each log at rest. */
export type LogEnds = ReadonlyMap<Domain, number>;

interface Picture {
  isAtRest: boolean;
  ends: Map<Domain, number>;
  /** Everything that moves while there is work; equal twice at rest is rest. */
  mark: string;
}

/** Asks `domain`'s service how it stands. */
export async function askStatus(
  bus: Bus,
  from: { tenant: string; source: string },
  domain: Domain,
  timeoutMs = ASK_MS,
): Promise<HostStatus> {
  const subject = rpcSubject({ ...from, domain, verb: "status" });
  const answer = await bus.request(subject, {}, new Uint8Array(), timeoutMs);
  return (JSON.parse(new TextDecoder().decode(answer.data)) as { status: HostStatus }).status;
}

async function take(
  bus: Bus,
  from: { tenant: string; source: string },
  domains: readonly Domain[],
): Promise<Picture> {
  const ends = new Map<Domain, number>();
  const parts = await Promise.all(
    domains.map(async (domain) => {
      const intake = await bus.streamState(intakeStream(domain));
      const status = await askStatus(bus, from, domain);
      ends.set(domain, status.position);
      const isAtRest =
        status.isSettled &&
        status.acked >= status.position &&
        status.intake >= (intake?.lastSeq ?? 0);
      return { isAtRest, mark: `${intake?.lastSeq}/${status.intake}/${status.position}` };
    }),
  );
  return {
    isAtRest: parts.every((part) => part.isAtRest),
    ends,
    mark: parts.map((part) => part.mark).join(" "),
  };
}

/**
 * Resolves at rest with the end of each log. All positions only grow, so two equal pictures, each of
 * every service at rest, mean that there was a moment between them at which all were. Throws
 * `timeout` after `stallMs` in which nothing moved.
 */
export async function untilAtRest(
  bus: Bus,
  from: { tenant: string; source: string },
  domains: readonly Domain[],
  stallMs: number,
): Promise<LogEnds> {
  let before: Picture = NOTHING;
  let moved = performance.now();
  for (let pause = 1; ; pause = Math.min(PAUSE_MS_MAX, pause * 2)) {
    const now = await take(bus, from, domains).catch(withoutAnswer);
    if (now.isAtRest && before.isAtRest && now.mark === before.mark) return now.ends;
    if (now.mark !== before.mark) moved = performance.now();
    else if (performance.now() - moved > stallMs) {
      throw new HarmovelaError("timeout", `the services do not come to rest: ${now.mark}`);
    }
    before = now;
    if (!now.isAtRest) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

const NOTHING: Picture = { isAtRest: false, ends: new Map(), mark: "" };

/** A service that does not answer now may do so after a change of leader. */
function withoutAnswer(error: unknown): Picture {
  const known = toHarmovelaError(error);
  if (known.category !== "dependency") throw known;
  return { ...NOTHING, mark: known.message };
}
