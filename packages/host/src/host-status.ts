import type { Domain } from "@harmovela/envelope";
import type { KeptSnapshot } from "./snapshot/keeper.ts";

/** What a service tells of itself: the read `status`. */
export interface HostStatus {
  domain: string;
  service: string;
  instance: string;
  role: "starting" | "standby" | "leader" | "stopped";
  /** Serves reads of a state that has reached the end of the log, and as leader judges. */
  isReady: boolean;
  /** Last folded log position, and up to where the log is known to be stored. */
  position: number;
  acked: number;
  /** Everything of the intake up to here has been judged. */
  intake: number;
  /** As leader: what arrived is judged and stored, and nothing is due now. */
  isSettled: boolean;
  epoch: number;
  /** Folded positions of the observed logs. */
  seen: Partial<Record<Domain, number>>;
  foreign: number;
  /** The newest snapshot that this leadership has stored. */
  snapshot?: KeptSnapshot;
  counters: Record<string, number>;
  alarms: { alarm: string; count: number }[];
  /** Why it stopped by itself. */
  failure?: string;
}
