/** Knows when a stack has come to rest: every intake judged, every log stored, nothing due now. */
import { type Bus, intakeStream, rpcSubject } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import type { HostStatus } from "@harmovela/host";

const ASK_MS = 5_000;
const PAUSE_MS_MAX = 50;
/** With several replicas: questions until one of them must have been the leader's. */
const ASKED_MAX = 24;
/** From here on a stack counts as one that others keep busy. */
const BUSY_MS = 3_000;

/** The end of each log at rest. */
export type LogEnds = ReadonlyMap<Domain, number>;

interface Picture {
  isAtRest: boolean;
  /** Domains that are at rest by themselves. */
  resting: Domain[];
  intakes: Map<Domain, number>;
  ends: Map<Domain, number>;
  /** Everything that moves while there is work; equal twice at rest is rest. */
  mark: string;
}

type Asker = { tenant: string; source: string };

/** Asks `domain`'s service, any replica of it, how it stands. */
export async function askStatus(
  bus: Bus,
  from: Asker,
  domain: Domain,
  timeoutMs = ASK_MS,
): Promise<HostStatus> {
  const subject = rpcSubject({ ...from, domain, verb: "status" });
  const answer = await bus.request(subject, {}, new Uint8Array(), timeoutMs);
  return (JSON.parse(new TextDecoder().decode(answer.data)) as { status: HostStatus }).status;
}

/** Which replica answers is chance; only the leader knows whether there is work left. */
export async function askLeader(
  bus: Bus,
  from: Asker,
  domain: Domain,
  timeoutMs = ASK_MS,
): Promise<HostStatus> {
  let status = await askStatus(bus, from, domain, timeoutMs);
  for (let asked = 1; asked < ASKED_MAX && status.role !== "leader"; asked++) {
    status = await askStatus(bus, from, domain, timeoutMs);
  }
  return status;
}

async function take(bus: Bus, from: Asker, domains: readonly Domain[]): Promise<Picture> {
  const picture: Picture = {
    isAtRest: false,
    resting: [],
    intakes: new Map(),
    ends: new Map(),
    mark: "",
  };
  const marks = await Promise.all(
    domains.map(async (domain) => {
      const intake = (await bus.streamState(intakeStream(domain)))?.lastSeq ?? 0;
      const status = await askLeader(bus, from, domain);
      picture.intakes.set(domain, intake);
      picture.ends.set(domain, status.position);
      if (status.isSettled && status.acked >= status.position && status.intake >= intake) {
        picture.resting.push(domain);
      }
      return `${domain} ${status.role} ${intake}/${status.intake}/${status.position}`;
    }),
  );
  picture.isAtRest = picture.resting.length === domains.length;
  picture.mark = marks.join(", ");
  return picture;
}

/**
 * Resolves at rest with the end of each log. All positions only grow, so two equal pictures, each of
 * every service at rest, mean that there was a moment between them at which all were. Where others
 * keep a stack busy there is no such moment; then each service must have been at rest once after what
 * was there at the beginning. Throws `timeout` after `stallMs` in which nothing moved.
 */
export async function untilAtRest(
  bus: Bus,
  from: Asker,
  domains: readonly Domain[],
  stallMs: number,
): Promise<LogEnds> {
  const began = performance.now();
  const rested = new Set<Domain>();
  let first: Picture | undefined;
  let before: Picture = NOTHING;
  let moved = began;
  for (let pause = 1; ; pause = Math.min(PAUSE_MS_MAX, pause * 2)) {
    const now = await take(bus, from, domains).catch(withoutAnswer);
    if (now.isAtRest && before.isAtRest && now.mark === before.mark) return now.ends;
    const at = performance.now();
    if (now.intakes.size > 0) first ??= now;
    for (const domain of now.resting) {
      if ((now.intakes.get(domain) ?? 0) >= (first?.intakes.get(domain) ?? 0)) rested.add(domain);
    }
    if (at - began > BUSY_MS && rested.size === domains.length) return now.ends;
    if (now.mark !== before.mark) moved = at;
    else if (at - moved > stallMs) {
      throw new HarmovelaError("timeout", `the services do not come to rest: ${now.mark}`);
    }
    before = now;
    if (!now.isAtRest) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

const NOTHING: Picture = {
  isAtRest: false,
  resting: [],
  intakes: new Map(),
  ends: new Map(),
  mark: "",
};

/** A service that does not answer now may do so after a change of leader. */
function withoutAnswer(error: unknown): Picture {
  const known = toHarmovelaError(error);
  if (known.category !== "dependency") throw known;
  return { ...NOTHING, mark: known.message };
}
