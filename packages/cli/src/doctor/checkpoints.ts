/** The room of the store of checkpoints: of all together, and of the tenants that have taken most of it. */
import { type Bus, CHECKPOINT_BUCKET, decodeToken, rpcSubject } from "@harmovela/bus";
import { toHarmovelaError } from "@harmovela/failure";
import { STAND_IN } from "../stdio/address.ts";
import { plainName } from "../terminal.ts";
import type { Finding } from "./finding.ts";

const ASK_MS = 2_000;
/** Per cent of a room from which on it is worth a word. */
const FULL_SHARE = 80;
/** Checkpoints looked at; those that were stored first. */
const LOOKED_MAX = 2_048;
const PAGE = 256;
/** Tenants of which it is told. */
const TOLD_MAX = 5;

/** Made by the interruption manager when it starts. */
export async function checkpointFindings(bus: Bus): Promise<Finding[]> {
  const name = `store of checkpoints ${CHECKPOINT_BUCKET}`;
  try {
    const state = await bus.streamState(`OBJ_${CHECKPOINT_BUCKET}`);
    if (state === undefined) {
      return [{ is: "bad", what: `${name} is missing`, advice: "start the interruption manager" }];
    }
    const { bytes, maxBytes, messages } = state;
    const tenants = messages === 0 ? [] : await largest(bus);
    const findings = await Promise.all(tenants.map((tenant) => tenantFinding(bus, tenant)));
    return [roomFinding(name, bytes, maxBytes), ...findings.filter((found) => found !== undefined)];
  } catch (error) {
    const { code } = toHarmovelaError(error);
    return [{ is: "bad", what: `${name} (${code})`, advice: "ask again when the server answers" }];
  }
}

function roomFinding(name: string, bytes: number, maxBytes: number): Finding {
  if (maxBytes <= 0) return { is: "good", what: `${name}: ${bytes} bytes` };
  const share = Math.round((100 * bytes) / maxBytes);
  const what = `${name}: ${bytes} bytes, ${share} % of its room`;
  if (share < FULL_SHARE) return { is: "good", what };
  return { is: "note", what, advice: "give it more: HARMOVELA_CHECKPOINT_BYTES" };
}

/** Tenants, who has stored most first. */
async function largest(bus: Bus): Promise<string[]> {
  const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas: 1, mayCreate: false });
  const taken = new Map<string, number>();
  let from: number | undefined = 0;
  for (let looked = 0; from !== undefined && looked < LOOKED_MAX; looked += PAGE) {
    const page = await blobs.page(from, PAGE);
    for (const { name, bytes } of page.blobs) {
      const tenant = decodeToken(name.slice(0, Math.max(0, name.indexOf("."))));
      if (tenant !== undefined) taken.set(tenant, (taken.get(tenant) ?? 0) + bytes);
    }
    from = page.next;
  }
  const sorted = [...taken].sort(([, a], [, b]) => b - a);
  return sorted.slice(0, TOLD_MAX).map(([tenant]) => tenant);
}

/** As the leading manager counts it; undefined when it does not answer, which is said elsewhere. */
async function tenantFinding(bus: Bus, tenant: string): Promise<Finding | undefined> {
  const use = await askUse(bus, tenant).catch(() => undefined);
  if (use === undefined) return undefined;
  const { checkpoints, used_bytes: used, quota_bytes: quota } = use;
  const share = Math.round((100 * used) / quota);
  const what = `checkpoints of tenant ${plainName(tenant)}: ${checkpoints}, ${used} bytes, ${share} % of its quota`;
  if (share < FULL_SHARE) return { is: "good", what };
  const advice =
    "end tasks that stay interrupted, or give each more: HARMOVELA_CHECKPOINT_TENANT_BYTES";
  return { is: "note", what, advice };
}

interface Use {
  checkpoints: number;
  used_bytes: number;
  quota_bytes: number;
}

async function askUse(bus: Bus, tenant: string): Promise<Use | undefined> {
  const to = { tenant, source: STAND_IN, domain: "interruptions", verb: "checkpoint_use" } as const;
  const answer = await bus.request(rpcSubject(to), {}, Buffer.from("{}"), ASK_MS);
  const { result } = JSON.parse(new TextDecoder().decode(answer.data)) as { result?: Use };
  return result;
}
