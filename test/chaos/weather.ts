/** What can happen to processes: each action leaves everything running again. */
import { setTimeout as pass } from "node:timers/promises";
import type { JetStreamBus } from "@harmovela/bus";
import type { NatsServer } from "@harmovela/testkit";
import type { Fleet, ServiceProcess } from "./fleet.ts";
import { lastEpoch } from "./stored-log.ts";
import type { Loss } from "./take-over.ts";

export interface Weather {
  server: NatsServer;
  fleet: Fleet;
  bus: JetStreamBus;
  leaseMs: number;
  /** Numbers from 0 to 1. */
  chance: () => number;
  /** Leaders that were lost so far. */
  losses: Loss[];
  /** Actions so far, the one under way included. */
  history: string[];
}

interface Hit {
  isKilled: boolean;
  /** Whether server and standby run on. */
  isAlone: boolean;
}

/** Does that to whoever leads, if he is there, and notes it. */
async function strikeLeader(
  { fleet, bus, losses, history }: Weather,
  hit: Hit,
  strike: (leader: ServiceProcess) => void,
): Promise<ServiceProcess | undefined> {
  const known = await lastEpoch(bus);
  const leader = fleet.members.find(({ instance }) => instance === known?.instance);
  if (known === undefined || leader === undefined) return undefined;
  const isWarm = fleet.members.some((member) => member !== leader && member.isWarm);
  const { isKilled, isAlone } = hit;
  losses.push({
    epoch: known.epoch,
    at: Date.now(),
    isKilled,
    isPlain: isWarm && isAlone,
    during: `${history.at(-1)} after ${history.at(-2) ?? "nothing"}`,
  });
  strike(leader);
  return leader;
}

async function standby({ fleet, bus }: Weather): Promise<ServiceProcess | undefined> {
  const known = await lastEpoch(bus);
  return fleet.members.find(({ instance }) => instance !== known?.instance);
}

const stop = (process: ServiceProcess): void => process.signal("SIGSTOP");

export const ACTIONS: Record<string, (weather: Weather) => Promise<void>> = {
  async killLeader(weather) {
    const hit = { isKilled: true, isAlone: true };
    const leader = await strikeLeader(weather, hit, (process) => process.signal("SIGKILL"));
    await leader?.ended;
  },
  async killStandby(weather) {
    await (await standby(weather))?.kill();
  },
  /** Longer than the lease: it wakes up displaced, with appends on its mind. */
  async pauseLeader(weather) {
    const ms = weather.leaseMs * (1.5 + 2 * weather.chance());
    const paused = await strikeLeader(weather, { isKilled: false, isAlone: true }, stop);
    await pass(ms);
    paused?.signal("SIGCONT");
  },
  /** Shorter: nobody may notice, but its clocks have jumped. */
  async pauseLeaderBriefly(weather) {
    const ms = weather.leaseMs * 0.6 * weather.chance();
    const known = await lastEpoch(weather.bus);
    const paused = weather.fleet.members.find(({ instance }) => instance === known?.instance);
    paused?.signal("SIGSTOP");
    await pass(ms);
    paused?.signal("SIGCONT");
  },
  async pauseStandby(weather) {
    const ms = weather.leaseMs * 2 * weather.chance();
    const paused = await standby(weather);
    paused?.signal("SIGSTOP");
    await pass(ms);
    paused?.signal("SIGCONT");
  },
  async pauseAndKillServer(weather) {
    const ms = weather.leaseMs * 2 * weather.chance();
    const paused = await strikeLeader(weather, { isKilled: false, isAlone: false }, stop);
    await weather.server.kill();
    await weather.server.restart();
    await pass(ms);
    paused?.signal("SIGCONT");
  },
  async killServer({ server }) {
    await server.kill();
    await server.restart();
  },
  /** Longer or shorter than the lease, which runs on in the server's clock. */
  async pauseServer({ server, leaseMs, chance }) {
    const ms = leaseMs * 2 * chance();
    const { pid } = server;
    if (pid === undefined) throw new Error("the server does not run");
    process.kill(pid, "SIGSTOP");
    await pass(ms);
    process.kill(pid, "SIGCONT");
  },
  async killAll(weather) {
    const others = weather.fleet.members;
    await strikeLeader(weather, { isKilled: true, isAlone: false }, () => {
      for (const each of others) each.signal("SIGKILL");
    });
    await Promise.all(others.map((each) => each.kill()));
  },
};
