/** Service processes: started, killed, paused, replaced. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { connectBus, type JetStreamBus, LEASE_BUCKET } from "@harmovela/bus";
import { bundleProcess } from "./bundle.ts";
import { within } from "./deadline.ts";
import type { KillOrder } from "./kill-order.ts";
import type { ServiceProcessConfig } from "./service-process.ts";

/** Shifts the wall clock of a process. */
const SHIFTED_CLOCK = new URL("shifted-clock.mjs", import.meta.url).href;

export class ServiceProcess implements AsyncDisposable {
  readonly instance: string;
  readonly child: ChildProcess;
  /** By how much its wall clock differs from the machine's, at its start. */
  readonly clockShiftMs: number;
  /** Resolves when the process is no more. */
  readonly ended: Promise<void>;
  /** Why the service stopped by itself, if it did. */
  failure: string | undefined;
  #printed = "";
  readonly #waiting = new Set<() => void>();

  /** `clockShiftsMs`: of its wall clock; each SIGUSR2 puts the next one in force. */
  constructor(script: string, config: ServiceProcessConfig, clockShiftsMs: readonly number[] = []) {
    this.instance = config.instance;
    this.clockShiftMs = clockShiftsMs[0] ?? 0;
    const preload = clockShiftsMs.length === 0 ? [] : ["--import", SHIFTED_CLOCK];
    const child = spawn(process.execPath, [...preload, script, JSON.stringify(config)], {
      env: { ...process.env, HARMOVELA_TEST_CLOCK_SHIFTS_MS: clockShiftsMs.join() },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.child = child;
    this.ended = once(child, "exit").then(() => {
      for (const look of this.#waiting) look();
    });
    child.stdout.on("data", (chunk: Buffer) => {
      this.#printed += chunk.toString();
      this.failure = /^failed (.*)$/m.exec(this.#printed)?.[1];
      for (const look of this.#waiting) look();
    });
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** It has read the whole log, and need not read it again. */
  get isWarm(): boolean {
    const said = this.#printed.match(/^(ready|cold)$/gm);
    return this.isRunning && said?.at(-1) === "ready";
  }

  /** What a shifted wall clock showed at the start and after each step. */
  get wallClock(): number[] {
    return [...this.#printed.matchAll(/^wall (\d+)$/gm)].map(([, shown]) => Number(shown));
  }

  #hasSaid(line: string): boolean {
    return this.#printed.split("\n").includes(line);
  }

  /** Resolves when the process has said so, or is no more. */
  async until(line: "started" | "ready" | "leading"): Promise<void> {
    const said = new Promise<void>((resolve) => {
      const look = () => {
        if (this.isRunning && !this.#hasSaid(line)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
    await within(30_000, `${this.instance} is ${line}`, said);
  }

  signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT" | "SIGUSR2"): void {
    this.child.kill(signal);
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.signal("SIGKILL");
    await this.ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

export interface FleetOptions {
  /** Which service. Default the coordinator. */
  domain?: ServiceProcessConfig["domain"];
  /** Its settings where they differ from the defaults. */
  settings?: ServiceProcessConfig["settings"];
  url: string | string[];
  leaseTtlMs: number;
  /** Copies of each stream. Default 1. */
  replicas?: number;
  /** How late a process learns that its lease is lost. */
  blindMs?: number;
  /** Frees the lease of a process that is known to be dead, to save the wait for its end. */
  isLeaseFreed?: boolean;
}

/** Processes of one service. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #script: string;
  readonly #bus: JetStreamBus;
  readonly #members = new Set<ServiceProcess>();
  readonly failures: string[] = [];
  /** Processes that ended by SIGKILL. */
  killed = 0;
  started = 0;
  #isClosing = false;

  private constructor(options: FleetOptions, script: string, bus: JetStreamBus) {
    this.#options = options;
    this.#script = script;
    this.#bus = bus;
  }

  static async open(options: FleetOptions): Promise<Fleet> {
    const script = await bundleProcess("service-process");
    const bus = await connectBus({ servers: options.url, name: "chaos fleet" });
    return new Fleet(options, script, bus);
  }

  get members(): ServiceProcess[] {
    return [...this.#members].filter((member) => member.isRunning);
  }

  /** Keeps so many processes running from now on, whatever happens to them; each gets the next order. */
  keep(size: number, order: () => KillOrder | undefined = () => undefined): void {
    for (let count = 0; count < size; count += 1) this.#keepOne(() => this.start(order()));
  }

  /** One more process, which nobody replaces. */
  start(kill?: KillOrder, clockShiftsMs: readonly number[] = []): ServiceProcess {
    this.started += 1;
    const { url, leaseTtlMs, replicas = 1, blindMs = 0 } = this.#options;
    const { domain = "tasks", settings = {} } = this.#options;
    const instance = `${domain}-${this.started}`;
    const config: ServiceProcessConfig = {
      domain,
      settings,
      url,
      instance,
      leaseTtlMs,
      replicas,
      tokenKeyFile: join(dirname(this.#script), "handoff-keys.json"),
      blindMs,
      ...(kill === undefined ? {} : { kill }),
    };
    const member = new ServiceProcess(this.#script, config, clockShiftsMs);
    this.#members.add(member);
    this.#afterEnd(member).catch((error: unknown) => this.failures.push(`fleet: ${error}`));
    return member;
  }

  async #afterEnd(member: ServiceProcess): Promise<void> {
    await member.ended;
    this.#members.delete(member);
    if (member.child.signalCode === "SIGKILL") this.killed += 1;
    const { exitCode } = member.child;
    if (member.failure !== undefined) this.failures.push(`${member.instance}: ${member.failure}`);
    else if (exitCode !== null && exitCode !== 0)
      this.failures.push(`${member.instance}: exit code ${exitCode}`);
    if (this.#options.isLeaseFreed && !this.#isClosing) await this.#freeLease(member.instance);
  }

  #keepOne(start: () => ServiceProcess): void {
    start().ended.then(
      () => {
        if (!this.#isClosing) this.#keepOne(start);
      },
      (error: unknown) => this.failures.push(`fleet: ${error}`),
    );
  }

  /** Only if that process held it. */
  async #freeLease(instance: string): Promise<void> {
    const { domain = "tasks" } = this.#options;
    const subject = `$KV.${LEASE_BUCKET}.${domain}`;
    const answer = await this.#bus.nats.request(
      `$JS.API.STREAM.MSG.GET.KV_${LEASE_BUCKET}`,
      JSON.stringify({ last_by_subj: subject }),
    );
    const { message } = answer.json<{ message?: { seq: number; data?: string } }>();
    const value = Buffer.from(message?.data ?? "", "base64").toString();
    if (message === undefined || !value.includes(`"${instance}"`)) return;
    // As when its time is over; never a later entry of somebody else.
    await this.#bus.nats.request(
      `$JS.API.STREAM.PURGE.KV_${LEASE_BUCKET}`,
      JSON.stringify({ filter: subject, seq: message.seq + 1 }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#members].map((member) => member.kill()));
    await this.#bus.close();
  }
}
