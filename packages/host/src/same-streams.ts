import type { StreamState } from "@harmovela/bus";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

/**
 * A stream that is gone, recreated or shorter than known must not be judged on (architecture, section
 * 6): throws, naming it. `leadership` is the body of the newest `epoch` entry.
 */
export function assertSameStream(
  which: "log" | "intake",
  state: StreamState | undefined,
  leadership: JsonObject | undefined,
  known: number,
): void {
  const streams = leadership?.streams as Record<string, string> | undefined;
  if (state === undefined) throw new HarmovelaError("internal_error", `the ${which} is gone`);
  if (streams !== undefined && state.created !== streams[which]) {
    throw new HarmovelaError("internal_error", `${state.name} was recreated`);
  }
  if (state.lastSeq < known) {
    const what = `${state.name} ends at ${state.lastSeq}, known up to ${known}`;
    throw new HarmovelaError("internal_error", what);
  }
}
