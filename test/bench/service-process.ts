/** A service as a process of its own, as it runs in earnest. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectBus, rpcSubject } from "@harmovela/bus";
import { pause, TENANT } from "./load.ts";

const MAINS = {
  tasks: "../../services/delegation-coordinator/dist/main.js",
  beliefs: "../../services/belief-tracker/dist/main.js",
} as const;
const READY_MS_MAX = 30_000;
/** As in docker-compose.yml. */
const NODE_FLAGS = ["--max-semi-space-size=64"];

/** Resolves when it leads; built code, with keys for handoff tokens. */
export async function startServiceProcess(
  url: string,
  domain: keyof typeof MAINS,
): Promise<AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-bench-"));
  const main = fileURLToPath(new URL(MAINS[domain], import.meta.url));
  const child = spawn(process.execPath, [...NODE_FLAGS, main], {
    env: {
      ...process.env,
      HARMOVELA_SERVERS: url,
      HARMOVELA_TOKEN_KEYS: join(folder, "keys.json"),
      HARMOVELA_LOG_LEVEL: "error",
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ended = once(child, "exit");
  await untilLeading(url, domain);
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilLeading(url: string, domain: keyof typeof MAINS): Promise<void> {
  const bus = await connectBus({ servers: url, name: "bench" });
  const subject = rpcSubject({
    tenant: TENANT,
    source: "agent:bench",
    domain,
    verb: "status",
  });
  for (const until = performance.now() + READY_MS_MAX; ; await pause(50)) {
    const answer = await bus.request(subject, {}, new Uint8Array(0), 1_000).catch(() => undefined);
    const text = answer === undefined ? "" : Buffer.from(answer.data).toString();
    if (text.includes('"role":"leader"')) break;
    if (performance.now() > until)
      throw new Error(`the service of ${domain} does not lead: ${text}`);
  }
  await bus.close();
}
