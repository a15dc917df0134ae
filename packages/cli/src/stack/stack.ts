/** A whole system for one command: a server, given or started here, and the services on it. */
import { setTimeout as pass } from "node:timers/promises";
import {
  generateTokenKeys,
  LOOK_EVERY_MS,
  openTokenKeyFile,
  openTokenKeys,
  type TokenKeys,
  tokenKeyFileIn,
} from "@harmovela/host";
import pino, { type Logger } from "pino";
import { CommandFailure } from "../command-failure.ts";
import { toServers } from "../options.ts";
import { VERSION } from "../version.ts";
import { type NatsProcess, type NatsProcessOptions, startNatsProcess } from "./nats-process.ts";
import { followFile } from "./reload.ts";
import { openServices, type Services } from "./services.ts";
import { assertWithoutKeys, openStackKeys, type StackKeys } from "./stack-keys.ts";

export interface StackOptions extends Omit<NatsProcessOptions, "accounts"> {
  /** Use this server instead of starting one. */
  server?: string;
  logger?: Logger;
  /** Tasks that nobody submitted here may be interrupted and undone (spec 11, C40). Default false. */
  externalTasks?: boolean;
  /** Nobody is who he says he is unless he proves it; needs a `storeDir`, for its keys lie there. Default false. */
  secure?: boolean;
  /** Nobody but this process speaks there (spec 9.6). Default false. */
  processIdentity?: boolean;
  /** Called when the server is there and before the services start. */
  beforeServices?: (url: string) => Promise<void>;
}

export interface Stack {
  readonly url: string;
  /** Where who speaks is proved. */
  readonly keys: StackKeys | undefined;
  /** Services that another process leads; they stand by here. */
  readonly standingBy: readonly string[];
  /** Rejects when the server or a service ends by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Drains the services, then stops the server if it was started here. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A leader that was killed is followed within this time; longer means that one is alive. */
const STANDBY_AFTER_MS = 8_000;

/** The services' own log: on stderr, at `level`. */
export function serviceLogger(level: string): Logger {
  return pino({ level, base: undefined }, pino.destination({ dest: 2, sync: true }));
}

/** Resolves when every service leads. Throws a typed error and leaves nothing behind when one does not. */
export async function openStack(options: StackOptions = {}): Promise<Stack> {
  const {
    server,
    logger = serviceLogger("silent"),
    externalTasks = false,
    secure = false,
    processIdentity = false,
    beforeServices,
    ...nats
  } = options;
  const keys = keysOf(secure, nats.storeDir);
  const accounts = keys === undefined ? {} : { accounts: keys.config };
  const own = server === undefined ? await startNatsProcess({ ...nats, ...accounts }) : undefined;
  const url = server ?? own?.url ?? "";
  try {
    await beforeServices?.(url);
    const tokens = await tokenKeysOf(own !== undefined, nats.storeDir);
    const services = await openServices(
      {
        servers: toServers(url),
        version: VERSION,
        logger,
        ...(tokens === undefined ? {} : { tokens }),
      },
      {
        externalTasks,
        processIdentity,
        standbyAfterMs: STANDBY_AFTER_MS,
        ...(keys === undefined ? {} : { keys }),
      },
    );
    return new RunningStack({ url, services, own, keys, logger });
  } catch (error) {
    await own?.stop();
    throw error;
  }
}

function keysOf(isSecure: boolean, storeDir: string | undefined): StackKeys | undefined {
  if (storeDir === undefined) {
    if (isSecure) throw new CommandFailure("keys need a store to lie in");
    return undefined;
  }
  if (isSecure) return openStackKeys(storeDir);
  assertWithoutKeys(storeDir);
  return undefined;
}

/**
 * The keys of the store, or of this process when the store goes with it. On somebody else's server
 * they are the file that HARMOVELA_TOKEN_KEYS names: every replica must have the same.
 */
async function tokenKeysOf(
  isOwn: boolean,
  storeDir: string | undefined,
): Promise<TokenKeys | undefined> {
  if (storeDir !== undefined) return await openTokenKeyFile(tokenKeyFileIn(storeDir));
  if (isOwn) return await openTokenKeys(await generateTokenKeys());
  const file = process.env.HARMOVELA_TOKEN_KEYS;
  return file === undefined || file === "" ? undefined : await openTokenKeyFile(file);
}

interface Parts {
  url: string;
  services: Services;
  own: NatsProcess | undefined;
  keys: StackKeys | undefined;
  logger: Logger;
}

class RunningStack implements Stack {
  readonly url: string;
  readonly keys: StackKeys | undefined;
  readonly standingBy: readonly string[];
  readonly failed: Promise<never>;
  readonly #services: Services;
  readonly #own: NatsProcess | undefined;
  readonly #unfollow: () => void;
  #closed: Promise<void> | undefined;

  constructor({ url, services, own, keys, logger }: Parts) {
    this.url = url;
    this.keys = keys;
    this.#unfollow =
      own === undefined || keys === undefined ? () => {} : followAccounts(own, keys, logger);
    this.#services = services;
    this.standingBy = services.standingBy;
    this.#own = own;
    this.failed = Promise.race([services.failed, this.#serverEnded()]);
    this.failed.catch(() => {
      // Whoever runs the stack awaits it; until then it must not end the process.
    });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#unfollow();
    await this.#services.close();
    await this.#own?.stop();
  }

  async #serverEnded(): Promise<never> {
    await (this.#own?.ended ?? new Promise<never>(() => {}));
    if (this.#closed !== undefined) return new Promise<never>(() => {});
    throw new CommandFailure("nats-server has ended by itself");
  }
}

/** Who is added or removed while the stack runs comes in or is cut off within seconds. */
function followAccounts(own: NatsProcess, keys: StackKeys, logger: Logger): () => void {
  return followFile(
    keys.config,
    async () => {
      // Services know the new grants by then, so whoever comes in may do at once what it may.
      await pass(LOOK_EVERY_MS);
      await own.reload();
      logger.info({ accounts: keys.config }, "who may connect was read anew");
    },
    (error) => logger.error({ err: error }, "who may connect stays as it was"),
  );
}
