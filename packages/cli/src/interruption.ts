/** Ctrl-C and its kin: the first asks to stop, the second stops at once. */
import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Interruption {
  /** The first signal. */
  readonly requested: Promise<NodeJS.Signals>;
  readonly isRequested: boolean;
  /** From here on signals do what they do without us. */
  dispose(): void;
}

/** Whoever owns a server or services listens, so that they are stopped in order. */
export function listenForInterruption(): Interruption {
  let isRequested = false;
  let request: (signal: NodeJS.Signals) => void = () => {};
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    request = resolve;
  });
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isRequested) process.exit(exitCodeOf(signal));
    isRequested = true;
    request(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    requested,
    get isRequested() {
      return isRequested;
    },
    dispose() {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}

/** As shells count it. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
