/** NATS micro services discovery: PING, INFO and STATS, for all, by name and by id. */
import type { Subscription } from "@harmovela/bus";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { Counters } from "../counters.ts";
import type { HostStatus } from "../host-status.ts";
import type { HostOptions } from "../options.ts";

export interface DiscoveryContext<State> {
  options: HostOptions<State>;
  counters: Counters;
  status(): HostStatus;
  /** Verbs that are answered beside those of the options. */
  builtIn: readonly string[];
}

/** `reply` is given what the asker wants to have its answer at. */
export function listenForDiscovery<State>(
  { options, counters, status, builtIn }: DiscoveryContext<State>,
  reply: (to: string, answer: JsonObject) => void,
): Subscription[] {
  const started = new Date().toISOString();
  const queue = `harmovela-${options.domain}`;
  const name = options.service.replace("service:", "harmovela-");
  const identity = { name, id: options.instance, version: options.version, metadata: {} };
  const answers: Record<string, () => JsonObject> = {
    PING: () => ({ ...identity, type: "io.nats.micro.v1.ping_response" }),
    INFO: () => ({
      ...identity,
      type: "io.nats.micro.v1.info_response",
      description: `judges ${options.domain}`,
      endpoints: [...Object.keys(options.reads), ...builtIn].map((verb) => ({
        name: verb,
        subject: `hv.*.rpc.*.${options.domain}.${verb}`,
        queue_group: queue,
        metadata: {},
      })),
    }),
    STATS: () => ({
      ...identity,
      type: "io.nats.micro.v1.stats_response",
      started,
      endpoints: [
        {
          name: "reads",
          subject: `hv.*.rpc.*.${options.domain}.*`,
          num_requests: counters.get("reads"),
          num_errors: 0,
          last_error: "",
          processing_time: 0,
          average_processing_time: 0,
          data: status() as unknown as JsonValue,
        },
      ],
    }),
  };
  return Object.entries(answers).flatMap(([verb, answer]) =>
    [`$SRV.${verb}`, `$SRV.${verb}.${name}`, `$SRV.${verb}.${name}.${options.instance}`].map(
      (subject) => options.answerer.subscribe(subject, (message) => reply(message.reply, answer())),
    ),
  );
}
