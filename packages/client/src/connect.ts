/** From a server's address to an agent. */
import { type Bus, type ConnectBusOptions, connectBus, encodeToken } from "@harmovela/bus";
import { Agent, type AgentOptions } from "./agent.ts";

export interface ConnectOptions extends AgentOptions, Omit<ConnectBusOptions, "name"> {
  /** Shown by the server beside the connection. Default: the agent's name. */
  name?: string;
}

/**
 * Connects an agent; the connection comes back by itself, for ever. Throws `connection_error`,
 * `unauthorized`, or `invalid_argument` for a name that is no id. Replies go to
 * `_INBOX.<tenant>.<agent>.`, which is where services answer with and without authentication.
 */
export async function connect(options: ConnectOptions): Promise<Agent> {
  const { agent: name, tenant = "default" } = options;
  let agent: Agent | undefined;
  const bus = await connectBus({
    servers: options.servers,
    name: options.name ?? name,
    inboxPrefix: options.inboxPrefix ?? `_INBOX.${encodeToken(tenant)}.${encodeToken(name)}`,
    ...(options.auth === undefined ? {} : { auth: options.auth }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...(options.waitOnFirstConnect === undefined
      ? {}
      : { waitOnFirstConnect: options.waitOnFirstConnect }),
    ...(options.connectTimeoutMs === undefined
      ? {}
      : { connectTimeoutMs: options.connectTimeoutMs }),
    ...(options.pingIntervalMs === undefined ? {} : { pingIntervalMs: options.pingIntervalMs }),
    onChange: (change) => {
      if (change === "connected") agent?.onReconnected();
      options.onChange?.(change);
    },
  });
  try {
    const access = options.auth === undefined ? "streams" : "services";
    agent = new Agent(bus, { access, ...options }, () => closeFlushed(bus));
  } catch (error) {
    await bus.close();
    throw error;
  }
  return agent;
}

/** An agent on a bus that somebody else owns; closing the agent leaves it open. */
export function openAgent(bus: Bus, options: AgentOptions): Agent {
  return new Agent(bus, options, async () => {});
}

async function closeFlushed(bus: Bus): Promise<void> {
  try {
    if (bus.isConnected) await bus.flush();
  } catch {
    // What could not be flushed was promised to nobody: every promise waits for an answer.
  }
  await bus.close();
}
