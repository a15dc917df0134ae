import { connect, createInbox, headers } from "@nats-io/transport-node";

// Verdicts go to an inbox of your own: _INBOX.<tenant>.<source>.
const inboxPrefix = "_INBOX.acme.agent:plain";
const nc = await connect({
  servers: process.env.HARMOVELA_SERVERS ?? "127.0.0.1:4222",
  inboxPrefix,
});
const inbox = createInbox(inboxPrefix);
const verdicts = nc.subscribe(inbox, { max: 1 });

const id = `evt_${Date.now()}`;
const envelope = {
  spec_version: "0.2",
  id,
  type: "task.submitted",
  source: "agent:plain",
  created_at: new Date().toISOString(),
  task_id: `task_${id}`,
  payload: { timeout_ms: 60_000 },
};
const h = headers();
h.set("Hv-Reply-To", inbox);
nc.publish("hv.acme.in.tasks.agent:plain.task.submitted", JSON.stringify(envelope), { headers: h });

for await (const verdict of verdicts) console.log(verdict.json().type, verdict.json().payload);
await nc.close();
