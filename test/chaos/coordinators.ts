/** Coordinator processes: started, killed, paused, replaced. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connectBus, type JetStreamBus, LEASE_BUCKET } from "@harmovela/bus";
import { bundleCoordinator } from "./bundle.ts";
import type { CoordinatorConfig } from "./coordinator-process.ts";
import { within } from "./deadline.ts";
import type { KillOrder } from "./kill-order.ts";

export class Coordinator implements AsyncDisposable {
  readonly instance: string;
  readonly child: ChildProcess;
  /** Resolves when the process is no more. */
  readonly ended: Promise<void>;
  /** Why the service stopped by itself, if it did. */
  failure: string | undefined;
  #printed = "";
  readonly #waiting = new Set<() => void>();

  constructor(script: string, config: CoordinatorConfig) {
    this.instance = config.instance;
    const child = spawn(process.execPath, [script, JSON.stringify(config)], {
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

  /** Resolves when the process has said so, or is no more. */
  async until(line: "started" | "leading"): Promise<void> {
    const said = new Promise<void>((resolve) => {
      const look = () => {
        if (this.isRunning && !this.#printed.split("\n").includes(line)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
    await within(30_000, `${this.instance} is ${line}`, said);
  }

  signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
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
  url: string;
  leaseTtlMs: number;
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
  readonly #members = new Set<Coordinator>();
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
    const script = await bundleCoordinator();
    const bus = await connectBus({ servers: options.url, name: "chaos fleet" });
    return new Fleet(options, script, bus);
  }

  get members(): Coordinator[] {
    return [...this.#members].filter((member) => member.isRunning);
  }

  /** Keeps so many processes running from now on, whatever happens to them; each gets the next order. */
  keep(size: number, order: () => KillOrder | undefined = () => undefined): void {
    for (let count = 0; count < size; count += 1) this.#keepOne(order);
  }

  /** One more process, which nobody replaces. */
  start(kill?: KillOrder): Coordinator {
    this.started += 1;
    const { url, leaseTtlMs, blindMs = 0 } = this.#options;
    const instance = `coordinator-${this.started}`;
    const member = new Coordinator(this.#script, {
      url,
      instance,
      leaseTtlMs,
      blindMs,
      ...(kill === undefined ? {} : { kill }),
    });
    this.#members.add(member);
    this.#afterEnd(member).catch((error: unknown) => this.failures.push(`fleet: ${error}`));
    return member;
  }

  async #afterEnd(member: Coordinator): Promise<void> {
    await member.ended;
    this.#members.delete(member);
    if (member.child.signalCode === "SIGKILL") this.killed += 1;
    if (member.failure !== undefined) this.failures.push(`${member.instance}: ${member.failure}`);
    if (this.#options.isLeaseFreed && !this.#isClosing) await this.#freeLease(member.instance);
  }

  #keepOne(order: () => KillOrder | undefined): void {
    const member = this.start(order());
    member.ended.then(
      () => {
        if (!this.#isClosing) this.#keepOne(order);
      },
      (error: unknown) => this.failures.push(`fleet: ${error}`),
    );
  }

  /** Only if that process held it. */
  async #freeLease(instance: string): Promise<void> {
    const subject = `$KV.${LEASE_BUCKET}.tasks`;
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
