import { inspect } from "node:util";

/** Told of what happened, `onError` or `onGap`; a fault of its own disturbs nothing here: it is a warning of the process. */
export function tell<T>(listener: ((told: T) => unknown) | undefined, told: T): void {
  try {
    // Nobody forbids an asynchronous one.
    Promise.resolve(listener?.(told)).catch(warn);
  } catch (error) {
    warn(error);
  }
}

function warn(error: unknown): void {
  process.emitWarning(`a listener has failed: ${inspect(error)}`, { code: "HARMOVELA_LISTENER" });
}
