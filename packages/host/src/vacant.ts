/** Stands in for a service that is not there: the whole validation, then a refusal that says so. */
import type { Decider, Domain } from "@harmovela/envelope";
import { reject } from "@harmovela/failure";

/** A decider that keeps no state and refuses everything as retryable, naming the missing service. */
export function createVacantDecider(domain: Domain, service: string): Decider<null> {
  return {
    initial: () => null,
    decide: (_state, { envelope }) =>
      envelope.type.startsWith("event.") || envelope.type === "session.heartbeat"
        ? { ignore: "nobody judges this domain" }
        : {
            reject: reject(
              "internal_error",
              `${service} is not running: nobody judges ${domain}`,
              { service, domain },
              { category: "dependency", stage: "rules" },
            ),
          },
    evolve: () => {
      // Refusals change nothing.
    },
    owed: () => undefined,
  };
}
