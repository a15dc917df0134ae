/** A service that is started while the bus cannot answer yet: a server that restarts, a cluster that elects. */
import { toHarmovelaError } from "@harmovela/failure";
import { type Host, openHost } from "./host.ts";
import type { HostOptions } from "./options.ts";

const RETRY_MS = 500;

/**
 * `openHost`, again and again while the bus is the reason that it fails. Throws at once what waiting
 * does not change: a stream that is not as asked for, a server without JetStream, a closed connection.
 */
export async function openHostPatiently<State>(options: HostOptions<State>): Promise<Host<State>> {
  const { clock, logger } = options;
  for (;;) {
    try {
      return await openHost(options);
    } catch (error) {
      const { code, category, retry } = toHarmovelaError(error);
      const isPassing = category === "dependency" && retry !== "never";
      if (!isPassing || code === "no_service") throw error;
      logger.warn({ err: error }, "the streams cannot be looked at yet");
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
    }
  }
}
