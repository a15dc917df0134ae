/** All four services, each on its own connections, on one server in memory, with time that is told to pass. */
import { createTracker, describeState as describeBeliefs } from "@harmovela/belief-tracker";
import {
  intakeStream,
  logStream,
  type MemoryBus,
  MemoryServer,
  type StoredMessage,
} from "@harmovela/bus";
import { checkLogs, recordOf } from "@harmovela/check";
import {
  createCoordinator,
  describeState as describeTasks,
} from "@harmovela/delegation-coordinator";
import type { Decider, Domain } from "@harmovela/envelope";
import {
  type GrantsRegistry,
  type Host,
  type HostStatus,
  instantPacking,
  openHost,
  type ServiceDefinition,
  type SourceLimits,
} from "@harmovela/host";
import { createManager, describeState as describeManager } from "@harmovela/interruption-manager";
import { createAttester, describeState as describeAttester } from "@harmovela/provenance-attester";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import pino from "pino";
import { SIM_TOKEN_KEYS } from "../sim/token-keys.ts";
import { Refold } from "./refold.ts";
import { Broken } from "./target.ts";

const T0 = Date.UTC(2026, 10, 30, 10);
const LEASE_TTL_MS = 30_000;
const RETENTION_MS = 30 * 86_400_000;
/** Simulated time within which everything that was said must have been judged. */
const REST_MS_MAX = 3_600_000;
const RETRY_MS = 100;
/** Of so many decisions one is looked at: whether it changed what it was to look at only. */
const PURITY_EVERY = 41;
/** Senders are proved, and the profiles that ask for most are in force where no session says otherwise. */
const STRICT = {
  authenticated: true,
  defaultProfiles: ["harmovela.coordination.v1", "harmovela.security.v1"],
};
/** Some have roles and some few scopes; what a body says of either is compared with it. */
const GRANTS: GrantsRegistry = {
  of: (_tenant, source) => {
    if (source === "agent:a") return { roles: ["operator"] };
    if (source !== "agent:c") return { roles: [] };
    return { roles: [], scopes: ["write:*", "read:tasks", "subscribe:task.*", "deploy:web"] };
  },
  listen: () => {},
};
/** So little that it is met now and then. */
const LIMITS: SourceLimits = { messagesPerSecond: 2, bytesPerSecond: 20_000 };
const logger = pino({ level: "silent" });

export const DOMAINS = ["tasks", "beliefs", "interruptions", "provenance"] as const;

interface Member {
  domain: Domain;
  host: Host;
  definition: ServiceDefinition<never>;
  describe(state: never): unknown;
}

interface Kind<State> {
  definition: ServiceDefinition<State>;
  describe(state: State): unknown;
}

export class World implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly server: MemoryServer;
  readonly agents: MemoryBus;
  readonly #members = new Map<Domain, Member>();
  readonly #limits: SourceLimits | undefined;
  #impure: string | undefined;

  private constructor(limits: SourceLimits | undefined) {
    this.#limits = limits;
    this.server = new MemoryServer({ clock: this.clock, now: () => this.now() });
    this.agents = this.server.connect({ name: "agents" });
  }

  /** Under an odd seed services as they are by default, under an even one those that believe nobody. */
  static async open(seed: number): Promise<World> {
    const settings = seed % 2 === 1 ? {} : STRICT;
    const world = new World(seed % 2 === 1 ? undefined : LIMITS);
    await world.#start("tasks", {
      definition: createCoordinator(settings),
      describe: describeTasks,
    });
    await world.#start("beliefs", {
      definition: createTracker(settings),
      describe: describeBeliefs,
    });
    await world.#start("interruptions", {
      definition: createManager({ ...settings, externalTasks: seed % 4 === 0 }),
      describe: describeManager,
    });
    await world.#start("provenance", {
      definition: createAttester(settings),
      describe: describeAttester,
    });
    return world;
  }

  /** Broker time. */
  now(): number {
    return T0 + Math.floor(this.clock.monotonic());
  }

  async #start<State>(domain: Domain, kind: Kind<State>): Promise<void> {
    const { companion: _store, ...definition } = kind.definition;
    const connect = (role: string) => this.server.connect({ name: `${domain} ${role}` });
    const opening = openHost({
      ...definition,
      decider: this.#watched(domain, kind),
      version: "0.1.0",
      instance: domain,
      writer: connect("writer"),
      answerer: connect("answerer"),
      clock: this.clock,
      logger,
      replicas: 1,
      retentionMs: RETENTION_MS,
      packing: instantPacking,
      tokens: SIM_TOKEN_KEYS,
      leaseTtlMs: LEASE_TTL_MS,
      replyPrefix: () => "_INBOX.",
      ...(this.#limits === undefined ? {} : { sourceLimits: this.#limits, grants: GRANTS }),
    });
    const host = await settled(this.clock, opening);
    await settled(this.clock, host.untilLeading());
    this.#members.set(domain, { domain, host, ...kind } as unknown as Member);
  }

  /** `decide` and `owed` only look; asked twice, `owed` says the same. */
  #watched<State>(domain: Domain, { definition, describe }: Kind<State>): Decider<State> {
    const { decider } = definition;
    let calls = 0;
    return {
      ...decider,
      decide: (state, input, context) => {
        calls += 1;
        if (calls % PURITY_EVERY !== 0) return decider.decide(state, input, context);
        const before = JSON.stringify(describe(state));
        const decision = decider.decide(state, input, context);
        if (JSON.stringify(describe(state)) !== before)
          this.#impure = `deciding about ${input.envelope.type} changed the state of ${domain}`;
        return decision;
      },
    };
  }

  member(domain: Domain): Member {
    const member = this.#members.get(domain);
    if (member === undefined) throw new Error(`no service of ${domain}`);
    return member;
  }

  status(domain: Domain): HostStatus {
    return this.member(domain).host.status();
  }

  describe(domain: Domain): string {
    const { host, describe } = this.member(domain);
    return JSON.stringify(describe(host.leading()?.state as never));
  }

  messages(stream: string, after: number): StoredMessage[] {
    return this.server.stream(stream)?.after(after, Number.MAX_SAFE_INTEGER, undefined) ?? [];
  }

  lastSeq(stream: string): number {
    return this.server.stream(stream)?.lastSeq ?? 0;
  }

  /** Lets time pass until all that was said is judged and stored. Throws Broken when that never comes. */
  async rest(): Promise<void> {
    const until = this.clock.monotonic() + REST_MS_MAX;
    while (!DOMAINS.every((domain) => this.#isAtRest(domain))) {
      if (this.clock.monotonic() > until) throw new Broken(`never at rest: ${this.#restless()}`);
      await pass(this.clock, RETRY_MS);
    }
    if (this.#impure !== undefined) throw new Broken(this.#impure);
  }

  #isAtRest(domain: Domain): boolean {
    const { role, isSettled, intake } = this.status(domain);
    if (role === "stopped") throw new Broken(`${domain} stopped: ${this.status(domain).failure}`);
    return isSettled && intake === this.lastSeq(intakeStream(domain));
  }

  #restless(): string {
    return DOMAINS.filter((domain) => !this.#isAtRest(domain)).join(" ");
  }

  /** A fold of what is stored gives the leader's state, and the logs keep every rule. Throws Broken. */
  async verify(): Promise<void> {
    await this.rest();
    const stored = new Map(DOMAINS.map((domain) => [domain, this.messages(logStream(domain), 0)]));
    for (const domain of DOMAINS) {
      const { definition, describe } = this.member(domain);
      const refold = new Refold(definition.decider, stored);
      refold.read(stored.get(domain) ?? [], this.status(domain).seen);
      if (refold.fold.foreign > 0) throw new Broken(`${domain}: a foreign entry in the log`);
      if (JSON.stringify(describe(refold.fold.state)) !== this.describe(domain))
        throw new Broken(`${domain}: the fold of the log is another state than the leader's`);
    }
    const reports = await checkLogs(
      DOMAINS.map((domain) => ({
        domain,
        stream: logStream(domain),
        read: () => (stored.get(domain) ?? []).map(recordOf),
      })),
    );
    for (const [domain, { findings }] of reports) {
      const [first] = findings;
      if (first !== undefined)
        throw new Broken(`${domain}: the log breaks ${first.rule}: ${first.message}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { host } of this.#members.values()) {
      host.done.catch(() => {
        // Why it stopped was told when it was looked at.
      });
      await settled(this.clock, host.close());
    }
  }
}
