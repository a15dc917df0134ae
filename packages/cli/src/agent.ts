/** A command's connection as an agent. */
import { type Agent, connect } from "@harmovela/client";
import { toServers } from "./options.ts";
import { ownKey } from "./own-key.ts";

export interface AgentCommandOptions {
  server: string;
  tenant: string;
  as: string;
  /** Reads logs as streams also with a key, which must allow it. */
  streams?: boolean;
}

/** Runs the work as that agent and closes its connection, whatever comes of it. */
export async function withAgent<T>(
  { server, tenant, as, streams = false }: AgentCommandOptions,
  work: (agent: Agent) => Promise<T>,
): Promise<T> {
  const agent = await connect({
    servers: toServers(server),
    tenant,
    agent: as,
    name: "harmovela",
    ...ownKey(),
    ...(streams ? { access: "streams" } : {}),
  });
  try {
    return await work(agent);
  } finally {
    await agent.close();
  }
}
