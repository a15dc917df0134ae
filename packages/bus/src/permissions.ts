/**
 * Who may publish and subscribe what, as data for a nats-server (architecture, section 3). Identity is the
 * subject: these lists are what makes `<tenant>` and `<source>` in it true.
 */
import { type Domain, domainsIn, mayRead, participantsIn } from "@harmovela/envelope";
import { LEASE_BUCKET } from "./lease-keeper.ts";
import {
  AUDIT_STREAM,
  BLOB_BUCKET,
  CHECKPOINT_BUCKET,
  intakeStream,
  logStream,
} from "./streams.ts";
import { DOMAINS } from "./subjects.ts";
import { encodeToken } from "./tokens.ts";

/** What is not in a list is forbidden. */
export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

export interface AgentIdentity {
  readonly tenant: string;
  /** The `source` of its envelopes. */
  readonly agent: string;
  /** Scopes (spec 9.7); absent: everything of its tenant. Patterns of `subscribe:` are the service's to judge. */
  readonly scopes?: readonly string[];
}

/** Where the server moves the reply subject of a question that comes from another account. */
export const BORDER_REPLY_PREFIX = "_R_.";

/**
 * An agent says and asks under its own name, and hears what its tenant may see and what is sent to itself.
 * Nothing of the JetStream API: names of wildcards are escaped, so no name widens the lists.
 */
export function agentPermissions(identity: AgentIdentity): Permissions {
  const observer = observerPermissions(identity);
  const [tenant, agent] = [encodeToken(identity.tenant), encodeToken(identity.agent)];
  const writable = domainsIn(identity, "write");
  return {
    publish: [
      ...writable.map((domain) => `hv.${tenant}.in.${domain}.${agent}.>`),
      // Heartbeats and progress are of tasks.
      ...(writable.includes("tasks") ? [`hv.${tenant}.live.${agent}.>`] : []),
      ...observer.publish,
    ],
    subscribe: observer.subscribe,
  };
}

/** Who only watches: reads under its own name, everything that its tenant may see, its own inbox. */
export function observerPermissions(identity: AgentIdentity): Permissions {
  const [tenant, agent] = [encodeToken(identity.tenant), encodeToken(identity.agent)];
  const inbox = `_INBOX.${tenant}.${agent}.>`;
  if (identity.scopes === undefined) {
    return {
      publish: [`hv.${tenant}.rpc.${agent}.>`],
      subscribe: [`hv.${tenant}.ev.>`, `hv.${tenant}.live.>`, inbox],
    };
  }
  const readable = domainsIn(identity, "read");
  const sources = participantsIn(identity, "read")?.map((source) => encodeToken(source)) ?? [];
  const from = sources.length === 0 ? [""] : sources.map((source) => `.${source}`);
  return {
    publish: readable
      .filter((domain) => mayRead(identity, domain))
      .map((domain) => `hv.${tenant}.rpc.${agent}.${domain}.>`),
    subscribe: [
      ...readable.flatMap((domain) => from.map((source) => `hv.${tenant}.ev.${domain}${source}.>`)),
      ...(readable.includes("tasks") ? from.map((source) => `hv.${tenant}.live${source}.>`) : []),
      inbox,
    ],
  };
}

export interface ServiceIdentity {
  readonly domain: Domain;
  /** `service:<name>`, the source of its requests to other domains. */
  readonly service: string;
  readonly connection: "writer" | "answerer";
}

/** One of the two connections of a service: one appends and answers nobody, the other only answers. */
export function servicePermissions({ domain, service, connection }: ServiceIdentity): Permissions {
  return connection === "writer" ? writerPermissions(domain, service) : answererPermissions(domain);
}

function writerPermissions(domain: Domain, service: string): Permissions {
  const intake = intakeStream(domain);
  const log = logStream(domain);
  const buckets = domain === "interruptions" ? [BLOB_BUCKET, CHECKPOINT_BUCKET] : [BLOB_BUCKET];
  return {
    publish: [
      `hv.*.log.${domain}.>`,
      `hv.*.ctl.${domain}.>`,
      `hv.*.in.*.${encodeToken(service)}.>`,
      `hv.*.audit.${domain}.>`,
      ...["CREATE", "INFO", "MSG.GET"].map((verb) => `$JS.API.STREAM.${verb}.${AUDIT_STREAM}`),
      ...[intake, ...DOMAINS.map(logStream)].flatMap(readApi),
      `$JS.API.STREAM.PURGE.${log}`,
      `$KV.${LEASE_BUCKET}.${domain}`,
      ...readApi(`KV_${LEASE_BUCKET}`),
      ...buckets.flatMap((bucket) => [
        `$O.${bucket}.>`,
        `$JS.API.STREAM.UPDATE.OBJ_${bucket}`,
        `$JS.API.STREAM.PURGE.OBJ_${bucket}`,
        ...readApi(`OBJ_${bucket}`),
      ]),
      "$JS.FC.>",
    ],
    subscribe: ["_INBOX.>"],
  };
}

function answererPermissions(domain: Domain): Permissions {
  // What a lineage shows stands in any log.
  const shown = domain === "provenance" ? DOMAINS : [domain];
  return {
    publish: [
      "_INBOX.>",
      `${BORDER_REPLY_PREFIX}>`,
      ...shown.map((log) => `$JS.API.STREAM.MSG.GET.${logStream(log)}`),
    ],
    subscribe: [`hv.*.rpc.*.${domain}.*`, "hv.*.live.*.session.heartbeat", "$SRV.>", "_INBOX.>"],
  };
}

/** To make a stream or find it as needed, and to read it. */
function readApi(stream: string): string[] {
  return [
    `$JS.API.STREAM.CREATE.${stream}`,
    `$JS.API.STREAM.INFO.${stream}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.API.DIRECT.GET.${stream}`,
    `$JS.API.DIRECT.GET.${stream}.>`,
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
  ];
}
