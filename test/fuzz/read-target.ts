/**
 * Questions to living services: every read, discovery, heartbeats, and what is none of them.
 *
 * R1 A question with a reply subject of the asker's gets one answer; every other is counted as dropped.
 * R2 An answer is a result or a typed error, bounded and readable; never a fault of the service's own.
 * R3 Asking changes nothing.
 */
import { isUnderInbox, parseRpcSubject } from "@harmovela/bus";
import { type Domain, hasLoneSurrogate } from "@harmovela/envelope";
import { type ErrorPayload, isWireCode, type JsonObject } from "@harmovela/failure";
import { pass, SimRandom } from "@harmovela/testkit";
import { anyEnvelope, SOURCES, TENANTS } from "./envelopes.ts";
import { type Input, ofBytes, toBytes, toText } from "./input.ts";
import { addressed } from "./messages.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { mutateJson, troubleOf } from "./mutate-json.ts";
import { Broken, type Session, type Target } from "./target.ts";
import { DOMAINS, World } from "./world.ts";

const TEXT_MAX = 70_000;
/** Said before the first question, so that there is something to ask about. */
const SAID = 400;
const ANSWER_BYTES_MAX = 900_000;
/** A question waits five seconds for a cursor; then it is answered. */
const ANSWERED_MS = 6_000;
const INBOX = "_INBOX.fuzz";

const READS: Readonly<Record<Domain, readonly string[]>> = {
  tasks: [
    ...["task", "tree", "history", "session", "why", "delegation", "owner", "children", "list"],
    ...["token", "replay"],
  ],
  beliefs: ["get", "subject", "stale", "dependents", "why", "useable", "list", "replay"],
  interruptions: [
    ...["interruption", "interruptions", "checkpoints", "checkpoint", "compensations", "why"],
    "replay",
  ],
  provenance: ["chain", "attestations", "graph", "may", "replay"],
};
const ODD_VERBS: readonly string[] = ["status", "__proto__", "constructor", "toString", "-", "%2A"];
const VERBS: ReadonlySet<string> = new Set([...Object.values(READS).flat(), ...ODD_VERBS]);
const DISCOVERY = ["$SRV.PING", "$SRV.INFO", "$SRV.STATS", "$SRV.PING.harmovela-belief-tracker"];
const PARAMS: readonly string[] = [
  ...["task_id", "session_id", "event_id", "key", "source", "limit", "after", "cursor", "state"],
  ...[
    "agent",
    "action",
    "verify",
    "depth",
    "checkpoint_id",
    "filter",
    "from",
    "to",
    "ttl_ms",
    "id",
  ],
];

export const readTarget: Target = {
  name: "reads",
  batch: 64,
  sessionInputs: 8_192,
  seed: (random) => {
    const domain = random.pick(DOMAINS);
    const verb = random.pick(random.chance(0.95) ? READS[domain] : ODD_VERBS);
    const subject = random.chance(0.05)
      ? random.pick(DISCOVERY)
      : `hv.${random.pick(TENANTS)}.rpc.${random.pick(SOURCES)}.${domain}.${verb}`;
    const live = `hv.acme.live.${random.pick(SOURCES)}.session.heartbeat`;
    return {
      subject: ofBytes(random.chance(0.03) ? live : (subject ?? "")),
      body: ofBytes(paramsOf(random)),
      reply: random.chance(0.9)
        ? ""
        : (random.pick(["-", "hv.acme.log.tasks.a.-.task.x", "_INBOX"]) ?? ""),
    };
  },
  mutate: (input, other, random) => {
    const { subject = "", body = "", reply = "" } = input;
    switch (random.weighted({ json: 10, raw: 2, subject: 3, reply: 1 })) {
      case "json": {
        const text = mutateJson(toText(body), toText(other.body), random);
        return { ...input, body: ofBytes(text).slice(0, TEXT_MAX) };
      }
      case "raw":
        return { ...input, body: mutateBytes(body, other.body ?? "", random, TEXT_MAX) };
      case "subject":
        return { ...input, subject: mutateBytes(subject, other.subject ?? "", random, 4_000) };
      default:
        return { ...input, reply: mutateBytes(reply, other.reply ?? "", random, 2_000) };
    }
  },
  open: async (seed) => {
    const world = await World.open(seed);
    await populate(world, new SimRandom(seed, 7));
    return new ReadSession(world);
  },
};

function paramsOf(random: SimRandom): string {
  const fields = PARAMS.filter(() => random.chance(0.2)).map((name): string => {
    const task = name === "task_id" && random.chance(0.7);
    const value = task ? `"t${random.whole(0, 12)}"` : known(name, random);
    return `"${name}":${value}`;
  });
  return `{${fields.join(",")}}`;
}

/** Mostly something that is there. */
function known(name: string, random: SimRandom): string {
  if (random.chance(0.3)) return troubleOf(random);
  const values: Readonly<Record<string, string>> = {
    event_id: `"e${random.whole(0, 4_000)}"`,
    key: `"memory:f${random.whole(0, 5)}"`,
    session_id: `"s${random.whole(0, 4)}"`,
    limit: String(random.whole(1, 100)),
    cursor: `"HV_LOG_${(random.pick(DOMAINS) ?? "tasks").toUpperCase()}:${random.whole(0, 500)}"`,
    action: '"irreversible"',
    checkpoint_id: `"k${random.whole(0, 6)}"`,
    from: String(random.whole(0, 500)),
    verify: "true",
  };
  return values[name] ?? '"agent:a"';
}

/** Envelopes as agents send them, judged. */
async function populate(world: World, random: SimRandom): Promise<void> {
  for (let said = 0; said < SAID; said += 1) {
    const { subject, body } = addressed(
      anyEnvelope(random),
      random.pick(TENANTS),
      random.pick(SOURCES),
    );
    world.agents.publish(toText(subject), {}, toBytes(body));
    if (said % 20 === 0) await pass(world.clock, 100);
  }
  await pass(world.clock, 1_000);
  await world.rest();
}

class ReadSession implements Session {
  readonly #world: World;
  readonly #answers = new Map<string, Uint8Array[]>();
  readonly #others: string[] = [];
  #count = 0;

  constructor(world: World) {
    this.#world = world;
    world.agents.subscribe("_INBOX.>", ({ subject, data }) => {
      // Without data it is the server's word that nobody listens.
      if (!subject.startsWith(INBOX) && data.length > 0) this.#others.push(subject);
      this.#answers.set(subject, [...(this.#answers.get(subject) ?? []), data]);
    });
  }

  async run(inputs: readonly Input[]): Promise<string[]> {
    this.#answers.clear();
    const lengths = this.#lengths();
    const states = this.#states();
    const asked = inputs.map((input) => this.#ask(input));
    await pass(this.#world.clock, ANSWERED_MS);
    await this.#world.rest();
    this.#assertHealthy();
    const features = asked.map(({ reply, mustAnswer, subject }, index) => {
      try {
        return this.#outcomeOf(reply, mustAnswer, subject);
      } catch (error) {
        throw error instanceof Broken ? new Broken(error.message, index) : error;
      }
    });
    // R3; a token that was issued is an entry, and so is what came due meanwhile.
    for (const domain of DOMAINS) {
      const isStill = lengths.get(domain) === this.#length(domain);
      if (isStill && states.get(domain) !== this.#world.describe(domain))
        throw new Broken(`asking changed the state of ${domain}`);
    }
    return features;
  }

  check(): Promise<void> {
    return this.#world.verify();
  }

  close(): Promise<void> {
    return this.#world[Symbol.asyncDispose]();
  }

  #ask(input: Input): { reply: string; mustAnswer: boolean; subject: string } {
    this.#count += 1;
    const subject = toText(input.subject);
    const given = toText(input.reply);
    const reply = given === "" ? `${INBOX}.${this.#count}` : given === "-" ? "" : given;
    // Nobody else may publish anywhere else, and the server takes no white space.
    const isAllowed = /^(?:hv\.[^.]*\.(?:rpc|live)\.|\$SRV\.)/.test(subject);
    if (!isAllowed || /[\s\0]/.test(subject + reply))
      return { reply: "", mustAnswer: false, subject };
    this.#world.server.receive({ subject, block: "", data: toBytes(input.body), reply });
    const isRead = parseRpcSubject(subject) !== undefined || DISCOVERY.includes(subject);
    return { reply, mustAnswer: isRead && isUnderInbox(reply, "_INBOX."), subject };
  }

  /** R1, R2. */
  #outcomeOf(reply: string, mustAnswer: boolean, subject: string): string {
    const answers = reply === "" ? [] : (this.#answers.get(reply) ?? []);
    const isDiscovery = subject.startsWith("$SRV.");
    const isUnique = reply.startsWith(INBOX);
    if (isUnique && mustAnswer && answers.length === 0)
      throw new Broken("a question without an answer");
    if (isUnique && !isDiscovery && answers.length > 1) throw new Broken("two answers");
    const verb = parseRpcSubject(subject)?.verb ?? "-";
    const name = VERBS.has(verb) ? verb : "?";
    const [bytes] = answers;
    if (bytes === undefined) return `${name} silent`;
    if (bytes.length > ANSWER_BYTES_MAX) throw new Broken("an answer that is too large");
    return `${name} ${describeAnswer(bytes)}`;
  }

  /** Of everything that a state is made of. */
  #length(domain: Domain): number {
    const { position, seen } = this.#world.status(domain);
    return Object.values(seen).reduce((sum, each) => sum + each, position);
  }

  #lengths(): Map<string, number> {
    return new Map(DOMAINS.map((domain) => [domain, this.#length(domain)]));
  }

  #states(): Map<string, string> {
    return new Map(DOMAINS.map((domain) => [domain, this.#world.describe(domain)]));
  }

  #assertHealthy(): void {
    for (const domain of DOMAINS) {
      const { role, foreign } = this.#world.status(domain);
      if (role !== "leader" || foreign > 0)
        throw new Broken(`${domain}: somebody answered into a log`);
    }
    if (this.#others.some((subject) => !isUnderInbox(subject, "_INBOX.")))
      throw new Broken("an answer to a subject that is no inbox");
  }
}

function describeAnswer(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("utf8");
  // The server's own word that nobody listens.
  if (text === "") return "nobody";
  const answer = JSON.parse(text) as JsonObject;
  if (holdsHalfPair(answer)) throw new Broken("an answer that nobody can read");
  const { error, result, status } = answer as { error?: ErrorPayload } & JsonObject;
  if (error === undefined)
    return result === undefined ? `${status === undefined}` : shapeOf(result);
  if (!isWireCode(error.code)) throw new Broken(`the code ${error.code as string}`);
  const failure = error.details?.failure as { category?: string } | undefined;
  if (error.code === "internal_error" && failure?.category !== "dependency")
    throw new Broken("answered as a fault of the service's own");
  return `${error.code} ${error.message.replace(/\d+/g, "#")}`;
}

/** Which fields there are, not what is in them. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.length === 0 ? "" : typeof value[0]}]`;
  if (typeof value !== "object" || value === null) return typeof value;
  return Object.keys(value).sort().join(",").slice(0, 300);
}

function holdsHalfPair(value: unknown): boolean {
  if (typeof value === "string") return hasLoneSurrogate(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, part]) => hasLoneSurrogate(key) || holdsHalfPair(part));
}
