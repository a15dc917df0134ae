/** What somebody reads who has started a stack: where it is, what to do next, what it does not promise. */
import { dirname, relative } from "node:path";
import pc from "picocolors";
import { DEFAULT_SERVER, LOOPBACK } from "../options.ts";
import { plainText } from "../terminal.ts";
import { VERSION } from "../version.ts";
import { SERVICE_BY_DOMAIN } from "./services.ts";
import type { Stack } from "./stack.ts";
import type { StackKeys } from "./stack-keys.ts";

interface Told {
  /** The server belongs to the stack. */
  isOwn: boolean;
  host: string;
  storeDir: string;
  /** Of the server. */
  version: string;
}

type Row = readonly [name: string, text: string];

/** Safe to print. */
export function banner(stack: Stack, { isOwn, host, storeDir, version }: Told): string {
  const option = stack.url === DEFAULT_SERVER ? "" : ` --server ${stack.url}`;
  const logs = isOwn ? `logs in ${storeDir}; ` : "";
  const rows: Row[] = [
    ["server", `${stack.url}  (nats-server ${version})`],
    ["observe", "hv.default.ev.>  for tenant default, hv.*.ev.> for all"],
    ...(stack.keys === undefined ? [openNext(option)] : keyedNext(stack.keys, option)),
    ["judging", Object.values(SERVICE_BY_DOMAIN).map(nameOf).join(", ")],
    ...standby(stack.standingBy),
    ["auth", isOwn ? authentication(stack.keys, host) : "as that server is set up"],
    ["durable", `${logs}a killed process loses nothing that was acknowledged,`],
    ["", "a power failure may lose the last two minutes (the server's sync_interval)"],
  ];
  const lines = rows.map(([name, text]) => `  ${pc.dim(name.padEnd(9))} ${plainText(text)}`);
  return `${pc.bold(`Harmovela ${VERSION} is running.`)}\n\n${lines.join("\n")}\n\nCtrl-C stops it.\n`;
}

function openNext(option: string): Row {
  return ["next", `harmovela demo${option}      harmovela tail${option}`];
}

function keyedNext({ config, operator }: StackKeys, option: string): Row[] {
  return [
    ["next", `HARMOVELA_KEY=${fromHere(operator)} harmovela doctor${option}`],
    ["agents", `harmovela agent add agent:worker --config ${fromHere(config)}`],
  ];
}

function standby(services: readonly string[]): Row[] {
  if (services.length === 0) return [];
  const names = services.map(nameOf).join(", ");
  return [["standby", `another process leads ${names}; this one takes over when it stops`]];
}

function authentication(keys: StackKeys | undefined, host: string): string {
  if (keys !== undefined) return `ON: who connects needs a key of ${dirname(keys.config)}`;
  const reach = host === LOOPBACK ? "this machine" : `whatever reaches ${host}`;
  return `OFF: everybody on ${reach} may publish as anybody`;
}

/** As it can be typed here: the shorter of the two ways to say it. */
function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  return short.length < path.length ? short : path;
}

function nameOf(service: string): string {
  return service.replace("service:", "");
}
