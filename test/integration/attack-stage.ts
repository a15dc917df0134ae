/** A server with accounts as `harmovela agent` and `harmovela service` write them, and who is on it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTracker } from "@harmovela/belief-tracker";
import {
  authFromFile,
  connectBus,
  DOMAINS,
  intakeStream,
  type JetStreamBus,
  logStream,
  systemClock,
} from "@harmovela/bus";
import { enrol, grantsFileOf, keyFile } from "@harmovela/cli";
import { type Agent, connect } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain } from "@harmovela/envelope";
import {
  generateTokenKeys,
  openGrantsFile,
  openService,
  openTokenKeys,
  type RunningService,
  type ServiceDefinition,
  type SourceLimits,
} from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { readRecords } from "../chaos/stored-log.ts";
import { PlainAgent } from "./plain-agent.ts";

/** Whose services run; the attester notes by itself what it has seen, so its log is never still. */
const JUDGED = ["tasks", "beliefs", "interruptions"] as const;
const root = fileURLToPath(new URL("../../", import.meta.url));
const SERVICES: Record<Domain, string> = {
  tasks: "delegation-coordinator",
  beliefs: "belief-tracker",
  interruptions: "interruption-manager",
  provenance: "provenance-attester",
};
/** Room for checkpoints of a tenant, so that a few fill it. */
export const TENANT_BYTES = 100_000;
/** So that the snapshots are written while the test runs. */
const SNAPSHOT_ENTRIES = 20;

export class Stage implements AsyncDisposable {
  readonly server: NatsServer;
  readonly operator: JetStreamBus;
  readonly folder: string;
  services: RunningService[] = [];
  readonly #agents: PlainAgent[] = [];
  readonly #sdkAgents: Agent[] = [];
  readonly #processes: ChildProcess[] = [];
  readonly #limits: SourceLimits | undefined;

  private constructor(
    server: NatsServer,
    operator: JetStreamBus,
    folder: string,
    limits: SourceLimits | undefined,
  ) {
    this.#limits = limits;
    this.server = server;
    this.operator = operator;
    this.folder = folder;
  }

  /**
   * Services that lead, and keys for these agents, as in `acme agent:worker`; without rights they have all, and
   * each may send what is usual unless told.
   */
  static async open(
    agents: readonly Enrolled[],
    { services = true, limits }: { services?: boolean; limits?: SourceLimits } = {},
  ): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), "harmovela-keys-"));
    const config = join(folder, "agents.conf");
    for (const domain of DOMAINS) {
      const { service } = definitionOf(domain);
      for (const connection of ["writer", "answerer"] as const) {
        enrol(config, [
          {
            identity: { kind: "service", domain, service, connection },
            file: [domain, connection],
          },
        ]);
      }
    }
    enrol(config, [{ identity: { kind: "operator", name: "operator" }, file: ["operator"] }]);
    for (const [tenant, name, rights = {}] of agents) {
      const identity = { kind: "agent", tenant, name, ...rights } as const;
      enrol(config, [{ identity, file: [tenant, name] }]);
    }
    // The server's own file lies in another temporary folder beside this one.
    const server = await startNatsServer({
      config: `include "../${basename(folder)}/agents.conf"`,
    });
    const operator = await connectBus({
      servers: server.url,
      name: "operator",
      auth: authFromFile(join(folder, "operator.nk")),
    });
    const stage = new Stage(server, operator, folder, limits);
    if (services) await stage.startServices();
    return stage;
  }

  get config(): string {
    return join(this.folder, "agents.conf");
  }

  async startServices(): Promise<void> {
    const tokens = await openTokenKeys(await generateTokenKeys());
    for (const domain of JUDGED) {
      this.services.push(
        await openService(definitionOf(domain), {
          servers: this.server.url,
          version: "0.0.0",
          logger: pino({ level: "silent" }),
          tokens,
          grants: openGrantsFile(grantsFileOf(this.config), systemClock),
          snapshotEntries: SNAPSHOT_ENTRIES,
          ...(this.#limits === undefined ? {} : { sourceLimits: this.#limits }),
          writerAuth: authFromFile(join(this.folder, `${domain}.writer.nk`)),
          answererAuth: authFromFile(join(this.folder, `${domain}.answerer.nk`)),
        }),
      );
    }
    for (const { host } of this.services) await host.untilLeading();
  }

  async stopServices(): Promise<void> {
    for (const service of this.services.splice(0)) await service.close();
  }

  /** A service as a process of its own, with its keys. */
  spawnService(domain: Domain): ChildProcess {
    const keyOf = (connection: string) => join(this.folder, `${domain}.${connection}.nk`);
    const main = join(root, `services/${SERVICES[domain]}/src/main.ts`);
    const child = spawn(process.execPath, ["--conditions=development", "--import", "tsx", main], {
      cwd: root,
      env: {
        ...process.env,
        HARMOVELA_SERVERS: this.server.url,
        HARMOVELA_CREDS_WRITER: keyOf("writer"),
        HARMOVELA_CREDS_ANSWERER: keyOf("answerer"),
      },
      stdio: "ignore",
    });
    this.#processes.push(child);
    return child;
  }

  /** An agent of the SDK, with the file that the command wrote. */
  async sdkAgent(tenant: string, name: string): Promise<Agent> {
    const agent = await connect({
      servers: this.server.url,
      tenant,
      agent: name,
      auth: authFromFile(join(this.folder, keyFile([tenant, name]))),
    });
    this.#sdkAgents.push(agent);
    return agent;
  }

  async agent(tenant: string, name: string): Promise<PlainAgent> {
    const seed = readFileSync(join(this.folder, keyFile([tenant, name])));
    const agent = await PlainAgent.open(this.server.url, seed, {
      tenant,
      name,
      serverLog: () => this.server.log,
    });
    this.#agents.push(agent);
    return agent;
  }

  /** What must not change by an attack. */
  async picture(): Promise<Picture> {
    const logs = new Map<Domain, string[]>();
    let asked = 0;
    for (const domain of JUDGED) {
      const records = await readRecords(this.operator, domain);
      logs.set(
        domain,
        records.map((record) => `${record.seq} ${record.subject} ${textOf(record.data)}`),
      );
    }
    for (const domain of DOMAINS) {
      const state = await this.operator.streamState(intakeStream(domain));
      asked += state?.lastSeq ?? 0;
    }
    const first = await Promise.all(
      JUDGED.map(async (domain) => (await this.operator.streamState(logStream(domain)))?.firstSeq),
    );
    return { logs, asked, first: first.join() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#sdkAgents) await agent.close();
    for (const agent of this.#agents) await agent.close();
    for (const child of this.#processes) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await this.stopServices();
    await this.operator.close();
    await this.server[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Somebody who gets a key. */
export type Enrolled = readonly [
  tenant: string,
  name: string,
  rights?: { kind?: "observer"; roles?: string[]; scopes?: string[] },
];

export interface Picture {
  logs: Map<Domain, string[]>;
  /** Messages that the intakes have ever stored. */
  asked: number;
  first: string;
}

/** The entries that came between, of which `isExplained` must know each; nothing older has changed. */
export function assertOnlyGrown(
  before: Picture,
  after: Picture,
  isExplained: (entry: string) => boolean,
): void {
  assert.equal(after.first, before.first, "nothing was purged");
  for (const [domain, entries] of before.logs) {
    const now = after.logs.get(domain) ?? [];
    assert.deepEqual(
      now.slice(0, entries.length),
      entries,
      `${domain}: what was there is as it was`,
    );
    for (const entry of now.slice(entries.length)) assert.ok(isExplained(entry), entry);
  }
}

function definitionOf(domain: Domain): ServiceDefinition<unknown> {
  const settings = { authenticated: true };
  const made = {
    tasks: createCoordinator,
    beliefs: createTracker,
    interruptions: (both: typeof settings) => createManager(both, { tenantBytes: TENANT_BYTES }),
    provenance: createAttester,
  }[domain](settings);
  return made as ServiceDefinition<unknown>;
}

function textOf(data: Uint8Array | string): string {
  return typeof data === "string" ? data : new TextDecoder().decode(data);
}
