/** A lease whose holder learns late that it has lost it: for that long there are two leaders. */
import type { Bus, Lease, LeaseOptions } from "@harmovela/bus";

/** What a process does that was paused between looking at its lease and appending, for `blindMs`. */
export function openBlindLease(bus: Bus, options: LeaseOptions, blindMs: number): Lease {
  let isBelieved = false;
  let losing: NodeJS.Timeout | undefined;
  const lease = bus.openLease({
    ...options,
    onAcquired: () => {
      clearTimeout(losing);
      losing = undefined;
      if (isBelieved) return;
      isBelieved = true;
      options.onAcquired();
    },
    onLost: () => {
      losing = setTimeout(() => {
        isBelieved = false;
        options.onLost();
      }, blindMs);
    },
  });
  return {
    get isHeld() {
      return isBelieved;
    },
    close: () => {
      clearTimeout(losing);
      isBelieved = false;
      return lease.close();
    },
  };
}
