/**
 * Any bytes under any subject, with any header block, on any intake, while all four services live.
 *
 * I1 What an intake stored has exactly one outcome: an entry, a refusal with a code of the protocol, a
 *    recorded outcome repeated, or a drop that is counted. Nothing is a fault of the service's own.
 * I2 A verdict goes to the sender's inbox, once, and is itself an envelope that could be sent.
 * I3 An entry holds what was sent.
 * I4 The state is the fold of the log, deciding changes nothing, and the logs keep every rule.
 */
import { HEADER, intakeStream, isUnderInbox, logStream, type StoredMessage } from "@harmovela/bus";
import {
  checkEnvelope,
  checkPayload,
  type Domain,
  type Envelope,
  isRegistered,
  parseJson,
  sameJson,
} from "@harmovela/envelope";
import { isWireCode } from "@harmovela/failure";
import { pass } from "@harmovela/testkit";
import { anyEnvelope, SOURCES, TENANTS } from "./envelopes.ts";
import { type Input, ofBytes, toBytes, toText } from "./input.ts";
import { addressed, anyHead, mutateMessage } from "./messages.ts";
import { Broken, type Session, type Target } from "./target.ts";
import { DOMAINS, World } from "./world.ts";

/** A refusal repeats names and bounded details, never what was sent. */
const VERDICT_BYTES_MAX = 64 * 1024;
/** Real time for one batch; the machine may be busy with other things. */
const BATCH_MS_MAX = 60_000;
const OUTCOMES = ["accepted", "begun", "rejected", "duplicates", "ignored", "dropped"] as const;

export const intakeTarget: Target = {
  name: "intake",
  batch: 32,
  sessionInputs: 2_048,
  seed: (random) => ({
    ...addressed(anyEnvelope(random), random.pick(TENANTS), random.pick(SOURCES)),
    head: random.chance(0.1) ? anyHead(random) : "",
    reply: random.chance(0.02) ? ofBytes(random.pick(ELSEWHERE) ?? "") : "",
    wait: String(random.pick([0, 0, 0, 5, 500, 3_000])),
  }),
  mutate: (input, other, random) => mutateMessage(input, other, random),
  open: async (seed) => new IntakeSession(await World.open(seed)),
};

const ELSEWHERE = [
  ...["hv.acme.log.tasks.agent:a.-.task.completed", "hv.-.ctl.tasks.epoch", "_INBOX", "_INBOX."],
  ...["hv.acme.in.tasks.agent:a.task.submitted", "$JS.API.STREAM.DELETE.HV_LOG_TASKS", "_INBOX.>"],
];

interface Posted {
  domain: Domain;
  seq: number;
  input: Input;
  /** Where its verdict goes; undefined where none may go. */
  inbox: string | undefined;
}

class IntakeSession implements Session {
  readonly #world: World;
  readonly #verdicts = new Map<string, Uint8Array[]>();
  readonly #logged = new Map<Domain, number>();
  #count = 0;

  constructor(world: World) {
    this.#world = world;
    world.agents.subscribe("_INBOX.fuzz.*", ({ subject, data }) => {
      this.#verdicts.set(subject, [...(this.#verdicts.get(subject) ?? []), data]);
    });
  }

  async run(inputs: readonly Input[]): Promise<string[]> {
    const started = performance.now();
    this.#verdicts.clear();
    const before = this.#counts();
    const marks = new Map(
      DOMAINS.map((domain) => [domain, this.#world.lastSeq(intakeStream(domain))]),
    );
    const posted: (Posted | undefined)[] = [];
    for (const input of inputs) posted.push(await this.#post(input));
    await this.#world.rest();
    this.#assertHealthy();
    this.#assertCounted(before, marks);
    const entries = this.#newEntries();
    const features = posted.map((message, index) => {
      if (message === undefined) return "not stored";
      try {
        return this.#outcomeOf(message, entries.get(`${message.domain} ${message.seq}`) ?? []);
      } catch (error) {
        if (error instanceof Broken) throw new Broken(error.message, index);
        throw error;
      }
    });
    const ms = performance.now() - started;
    if (ms > BATCH_MS_MAX) throw new Broken("a batch took longer than it may");
    return features;
  }

  check(): Promise<void> {
    return this.#world.verify();
  }

  close(): Promise<void> {
    return this.#world[Symbol.asyncDispose]();
  }

  /** Into the stream as the server would store it; undefined when no intake takes the subject. */
  async #post(input: Input): Promise<Posted | undefined> {
    const wait = Number(input.wait);
    if (wait > 0 && wait <= 60_000) await pass(this.#world.clock, wait);
    const subject = toText(input.subject);
    if (/[\s\0]/.test(subject)) return undefined;
    const domain = DOMAINS.find((each) =>
      this.#world.server.stream(intakeStream(each))?.takes(subject),
    );
    if (domain === undefined) return undefined;
    this.#count += 1;
    const asked = toText(input.reply);
    const reply = asked === "" ? `_INBOX.fuzz.${this.#count}` : asked;
    const block = `NATS/1.0\r\n${HEADER.replyTo}: ${reply}\r\n${toText(input.head)}\r\n`;
    const stream = this.#world.server.stream(intakeStream(domain));
    const outcome = stream?.append(this.#world.now(), subject, block, toBytes(input.body));
    if (outcome === undefined || "error" in outcome) return undefined;
    const inbox = isUnderInbox(reply.trim(), "_INBOX.") ? reply : undefined;
    return { domain, seq: outcome.stored.seq, input, inbox };
  }

  #counts(): number {
    const total = (domain: Domain): number =>
      OUTCOMES.reduce((sum, name) => sum + (this.#world.status(domain).counters[name] ?? 0), 0);
    return DOMAINS.reduce((sum, domain) => sum + total(domain), 0);
  }

  /** I1: as many outcomes as messages, those that services sent to each other among them. */
  #assertCounted(before: number, marks: ReadonlyMap<Domain, number>): void {
    const stored = DOMAINS.reduce(
      (sum, domain) => sum + this.#world.lastSeq(intakeStream(domain)) - (marks.get(domain) ?? 0),
      0,
    );
    const outcomes = this.#counts() - before;
    if (outcomes !== stored) throw new Broken(`${outcomes} outcomes of ${stored} messages`);
  }

  #assertHealthy(): void {
    for (const domain of DOMAINS) {
      const { role, alarms, counters, foreign } = this.#world.status(domain);
      if (role !== "leader") throw new Broken(`${domain} does not lead any more`);
      if (foreign > 0) throw new Broken(`${domain}: somebody else's entry in the log`);
      for (const trouble of ["recoveries", "refolds", "intake_gaps", "obligations_failed"]) {
        if ((counters[trouble] ?? 0) > 0) throw new Broken(`${domain}: ${trouble}`);
      }
      const alarm = alarms.find(({ alarm: text }) => !EXPECTED_ALARM.test(text));
      if (alarm !== undefined) throw new Broken(`${domain}: ${alarm.alarm}`);
    }
  }

  #newEntries(): Map<string, StoredMessage[]> {
    const found = new Map<string, StoredMessage[]>();
    for (const domain of DOMAINS) {
      const messages = this.#world.messages(logStream(domain), this.#logged.get(domain) ?? 0);
      this.#logged.set(domain, this.#world.lastSeq(logStream(domain)));
      for (const message of messages) {
        const [, seq] = /^in:(\d+)$/.exec(message.header(HEADER.cause)) ?? [];
        if (seq === undefined || /^hv\.-\.ctl\./.test(message.subject)) continue;
        const key = `${domain} ${seq}`;
        found.set(key, [...(found.get(key) ?? []), message]);
      }
    }
    return found;
  }

  /** I1, I2, I3. */
  #outcomeOf({ input, inbox }: Posted, entries: readonly StoredMessage[]): string {
    if (entries.length > 1) throw new Broken("two entries of one message");
    const verdicts = inbox === undefined ? [] : (this.#verdicts.get(inbox) ?? []);
    if (verdicts.length > 1) throw new Broken("two verdicts on one message");
    const [entry] = entries;
    const [said] = verdicts;
    const verdict = said === undefined ? undefined : readVerdict(said);
    const logged = entry === undefined ? undefined : envelopeIn(entry);
    if (logged?.type.endsWith(".rejected") !== true && logged !== undefined && entry !== undefined)
      assertHolds(entry, logged, input);
    return featureOf(input, verdict, entry, logged);
  }
}

/** What agents do wrong and operators are told of. */
const EXPECTED_ALARM = /(?:goes on working at what is over or stopped|sends more than is judged)$/;

function envelopeIn(entry: StoredMessage): Envelope | undefined {
  if (entry.subject.split(".")[2] !== "log") return undefined;
  return JSON.parse(new TextDecoder().decode(entry.data)) as Envelope;
}

/** I2. */
function readVerdict(bytes: Uint8Array): Envelope {
  const json = parseJson(bytes, { maxBytes: VERDICT_BYTES_MAX });
  if (!json.ok) throw new Broken(`a verdict that nobody can read: ${json.error.message}`);
  const verdict = json.value as unknown as Envelope;
  assertSendable(verdict);
  return verdict;
}

function assertSendable(verdict: Envelope): void {
  const checked = checkEnvelope(verdict);
  const isGood = checked.ok ? checkPayload(verdict) : checked;
  if (!isGood.ok) throw new Broken(`a verdict that nobody may send: ${isGood.error.message}`);
  const { error } = verdict.payload as { error?: { code?: string; details?: Fields } };
  if (error === undefined) return;
  if (!isWireCode(error.code ?? "")) throw new Broken(`the code ${error.code}`);
  const failure = error.details?.failure as { category?: string } | undefined;
  if (error.code === "internal_error" && failure?.category !== "dependency")
    throw new Broken("refused as a fault of the service's own");
}

type Fields = Record<string, unknown>;

/** I3. */
function assertHolds(entry: StoredMessage, logged: Envelope, { body }: Input): void {
  if (entry.header(HEADER.digest) !== "") return;
  const sent = JSON.parse(toText(body)) as Fields;
  if (!sameJson(withoutDelivery(sent), withoutDelivery(logged)))
    throw new Broken("an entry that is not what was sent");
}

function withoutDelivery({ delivery: _stamped, ...rest }: Fields): Fields {
  return rest;
}

function featureOf(
  { subject }: Input,
  verdict: Envelope | undefined,
  entry: StoredMessage | undefined,
  logged: Envelope | undefined,
): string {
  const said = verdict ?? logged;
  const name = toText(subject).split(".").slice(5).join(".");
  const type = isRegistered(name) ? name : "?";
  const kind = entry?.subject.split(".")[2] ?? "-";
  if (said === undefined) return `${type} ${kind}`;
  const { error, flags, pending, duplicate } = said.payload as {
    error?: { code?: string; message?: string; details?: RefusalDetails };
    [field: string]: unknown;
  };
  if (error === undefined) return [type, kind, pending, duplicate, flags].join(" ");
  const { code, message = "", details } = error;
  // The words of a refusal are the service's own; only numbers in them differ.
  const words = message.replace(/\d+/g, "#");
  const path = details?.failure?.stage === "parse" ? "" : details?.path?.replace(/\d+/g, "#");
  return [type, kind, code, words, path, details?.reason].join(" ");
}

interface RefusalDetails {
  path?: string;
  reason?: string;
  failure?: { stage?: string };
}
