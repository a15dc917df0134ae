/** A worker in a process of its own; what it does with a job stands in the job's context, or it holds them all. */
import { once } from "node:events";
import { HarmovelaError } from "@harmovela/failure";
import { connect } from "../src/index.ts";

const {
  HARMOVELA_SERVERS: servers = "",
  WORKER_NAME: name = "",
  WORKER_HOLDS = "false",
  WORKER_OPTIONS = "{}",
} = process.env;

await using agent = await connect({ servers, agent: name });
const worker = await agent.worker(
  { concurrency: 4, ...JSON.parse(WORKER_OPTIONS), drainOn: process },
  async ({ context, description }, { signal, sessionId, progress }) => {
    if (context.throws === "plain") throw new Error("secret: do not tell");
    if (context.throws === "typed") throw new HarmovelaError("missing_capability", "no such tool");
    if (context.holds === true || WORKER_HOLDS === "true") {
      await progress({ message: "holding" });
      if (!signal.aborted) await once(signal, "abort");
      throw signal.reason;
    }
    return { pid: process.pid, sessionId: sessionId ?? null, did: description ?? null };
  },
);
console.log(`ready ${worker.sessionId}`);
await worker.closed;
console.log("closed");
