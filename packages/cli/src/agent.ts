/** A command's connection as an agent. */
import { type Agent, connect } from "@harmovela/client";
import { toServers } from "./options.ts";
import { ownKey } from "./own-key.ts";

export interface AgentCommandOptions {
  server: string;
  tenant: string;
  as: string;
}

/** Runs the work as that agent and closes its connection, whatever comes of it. */
export async function withAgent<T>(
  { server, tenant, as }: AgentCommandOptions,
  work: (agent: Agent) => Promise<T>,
): Promise<T> {
  const agent = await connect({
    servers: toServers(server),
    tenant,
    agent: as,
    name: "harmovela",
    ...ownKey(),
  });
  try {
    return await work(agent);
  } finally {
    await agent.close();
  }
}
