/** What is right and what is not with a server and the services on it. Changes nothing. */
import {
  AUDIT_STREAM,
  type Bus,
  DOMAINS,
  intakeStreamSpec,
  LEASE_BUCKET,
  logStreamSpec,
  type StreamSpec,
} from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { toHarmovelaError } from "@harmovela/failure";
import { SERVICE_BY_DOMAIN } from "../stack/services.ts";
import { STAND_IN } from "../stdio/address.ts";
import { askLeader } from "../stdio/settling.ts";
import { checkpointFindings } from "./checkpoints.ts";
import type { Finding } from "./finding.ts";

const ASK_MS = 2_000;
/** Clocks that differ by less are not worth a word. */
const CLOCK_MS_MAX = 2_000;
/** From here on the server may be told to write to disk before it answers. */
const SYNC_SINCE = [2, 10] as const;

/** Everything in the order in which it matters. */
export async function examine(
  bus: Bus,
  { version, tenant }: { version: string; tenant: string },
): Promise<Finding[]> {
  return [
    versionFinding(version),
    await jetStreamFinding(bus),
    ...(await streamFindings(bus)),
    ...(await checkpointFindings(bus)),
    ...(await serviceFindings(bus, tenant)),
    ...(await clockFindings(bus)),
    durabilityFinding(version),
  ];
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [has = 0, and = 0] = version.split(".").map(Number);
  return has > major || (has === major && and >= minor);
}

function versionFinding(version: string): Finding {
  if (isAtLeast(version, SYNC_SINCE)) return { is: "good", what: `nats-server ${version}` };
  return {
    is: "note",
    what: `nats-server ${version} works, and is not for production`,
    advice: "run a current release",
  };
}

async function ask(bus: Bus, subject: string, body = ""): Promise<Record<string, unknown>> {
  const answer = await bus.request(subject, {}, Buffer.from(body), ASK_MS);
  return JSON.parse(new TextDecoder().decode(answer.data)) as Record<string, unknown>;
}

async function jetStreamFinding(bus: Bus): Promise<Finding> {
  try {
    const info = await ask(bus, "$JS.API.INFO");
    if (info.error === undefined) {
      return {
        is: "good",
        what: `JetStream: ${info.streams} streams, ${info.storage} bytes stored`,
      };
    }
  } catch {
    // No answer says the same as an error.
  }
  return {
    is: "bad",
    what: "JetStream is off",
    advice: "start the server with -js or a jetstream block",
  };
}

async function streamFindings(bus: Bus): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const domain of DOMAINS) {
    for (const spec of [intakeStreamSpec(domain), logStreamSpec(domain)]) {
      findings.push(await streamFinding(bus, spec));
    }
  }
  return [...findings, ...(await auditFindings(bus))];
}

/** It is there where senders are proved. */
async function auditFindings(bus: Bus): Promise<Finding[]> {
  try {
    const state = await bus.streamState(AUDIT_STREAM);
    if (state === undefined) return [];
    const { messages, bytes, maxBytes } = state;
    const share = maxBytes > 0 ? `, ${Math.round((100 * bytes) / maxBytes)} % of its room` : "";
    return [{ is: "good", what: `stream ${AUDIT_STREAM}: ${messages} messages${share}` }];
  } catch (error) {
    const { message } = toHarmovelaError(error);
    return [{ is: "bad", what: message, advice: "ask again when the server answers" }];
  }
}

const LOGS = "HV_LOG_";
/** From here on the services begin nothing new (architecture, section 4). */
const SCARCE_SHARE = 0.8;

/** What the server has silently left out shows when the stream is asked for again. */
async function streamFinding(bus: Bus, spec: StreamSpec): Promise<Finding> {
  const { name } = spec;
  try {
    const info = await ask(bus, `$JS.API.STREAM.INFO.${name}`);
    if (info.error !== undefined) {
      return { is: "bad", what: `stream ${name} is missing`, advice: "start its service" };
    }
    const { num_replicas: replicas, max_bytes: maxBytes } = info.config as {
      num_replicas: number;
      max_bytes: number;
    };
    const state = await bus.provision({ ...spec, replicas, maxBytes });
    const limit = maxBytes > 0 ? `${Math.round((100 * state.bytes) / maxBytes)} % of its room` : "";
    const facts = [`${state.messages} messages`, `${replicas} replicas`, limit].filter(Boolean);
    const what = `stream ${name}: ${facts.join(", ")}`;
    const isScarce = maxBytes > 0 && state.bytes >= SCARCE_SHARE * maxBytes;
    if (!isScarce || !spec.name.startsWith(LOGS)) return { is: "good", what };
    const advice =
      "nothing new is begun there: raise its max_bytes, or keep less (HARMOVELA_RETENTION_DAYS)";
    return { is: "note", what, advice };
  } catch (error) {
    const { message, code } = toHarmovelaError(error);
    return {
      is: "bad",
      what: message,
      advice:
        code === "stream_mismatch"
          ? "set it so, or use a server that knows these settings"
          : "ask again when the server answers",
    };
  }
}

async function serviceFindings(bus: Bus, tenant: string): Promise<Finding[]> {
  return Promise.all(DOMAINS.map((domain) => serviceFinding(bus, tenant, domain)));
}

async function serviceFinding(bus: Bus, tenant: string, domain: Domain): Promise<Finding> {
  const name = SERVICE_BY_DOMAIN[domain].replace("service:", "");
  try {
    const status = await askLeader(bus, { tenant, source: STAND_IN }, domain, ASK_MS);
    const { role, isReady, epoch, position, alarms, foreign } = status;
    const what = `${name}: ${role}, epoch ${epoch}, at position ${position}`;
    if (!isReady) return { is: "bad", what: `${what}, NOT ready`, advice: "see its log" };
    const troubles = alarms.map(({ alarm, count }) => `${alarm} (${count})`);
    if (foreign > 0) troubles.push(`${foreign} foreign messages in its log`);
    if (troubles.length === 0) return { is: "good", what };
    return { is: "note", what: `${what}; ${troubles.join("; ")}`, advice: "see its log" };
  } catch (error) {
    const { code } = toHarmovelaError(error);
    return {
      is: "bad",
      what: `${name} does not answer (${code})`,
      advice: "start it, or all of them: harmovela up --server URL",
    };
  }
}

/** The newest renewal of a lease says what the broker's clock showed a moment ago. */
async function clockFindings(bus: Bus): Promise<Finding[]> {
  try {
    const stream = `KV_${LEASE_BUCKET}`;
    if (!(await bus.streamState(stream))?.messages) return [];
    const asked = Date.now();
    const renewed = await bus.lastOn(stream, `$KV.${LEASE_BUCKET}.tasks`);
    if (renewed === undefined) return [];
    const ahead = renewed.time - asked;
    if (ahead <= CLOCK_MS_MAX && ahead >= -2 * CLOCK_MS_MAX) {
      return [{ is: "good", what: "this machine's clock agrees with the server's" }];
    }
    return [
      {
        is: "note",
        what: `this machine's clock and the server's differ by about ${Math.round(Math.abs(ahead) / 1000)} s`,
        advice: "harmless for the services, which go by the server's clock; set the clocks right",
      },
    ];
  } catch {
    // Nobody leads, which is told above.
    return [];
  }
}

function durabilityFinding(version: string): Finding {
  const what = "killed processes lose nothing; what a power failure loses the server does not tell";
  return {
    is: "note",
    what,
    advice: isAtLeast(version, SYNC_SINCE)
      ? 'set jetstream { sync_interval: "always" } on a single server, or run three with replicas'
      : "this release syncs every two minutes and cannot be told otherwise; run a current one",
  };
}
