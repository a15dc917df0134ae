/**
 * What the recorder's agents do, each script one piece of work from its beginning to its end. They get
 * `send`, which resolves with whether the envelope was accepted, and `ask`, which reads from the service.
 */

const ERROR = { code: "task_error", message: "gave up", retryable: false };
const ASK_AGAIN_MS = 50;

/** `isOver`: whether the agents are to come to an end. */
export function scriptsOf({ send, ask, print, name, pass, isOver }) {
  let made = 0;
  const newId = (prefix) => {
    made += 1;
    return `${prefix}_${name}_${made}`;
  };

  async function submit(agent, more = {}, isStarted = true) {
    const task_id = newId("task");
    await send(agent, "task.submitted", { task_id, ...more });
    if (isStarted) await send(agent, "task.started", { task_id });
    return task_id;
  }

  async function tree(agent) {
    const root = await submit(agent);
    const middle = await submit(agent, { parent_task_id: root });
    const leaf = await submit(agent, { parent_task_id: middle });
    await submit(agent, { parent_task_id: middle }, false);
    return { root, middle, leaf };
  }

  /** Resolves with its id when it is ready, or with undefined when it has ended before. */
  async function openSession(agent, heartbeat_interval_ms = 0) {
    const session_id = newId("ses");
    const capabilities = { protocol: "harmovela", transports: ["nats"], heartbeat_interval_ms };
    const payload = { session_id, version: "0.2", capabilities };
    await send(agent, "session.opened", { session_id, payload });
    for (;;) {
      const { result } = await ask(agent, "session", { session_id });
      if (result?.state === "ready") return session_id;
      if (result?.state === "error") return undefined;
      await pass(ASK_AGAIN_MS);
    }
  }

  const closeSession = (agent, session_id) =>
    send(agent, "session.closed", { session_id, payload: { session_id } });

  /** Work for another agent, offered below a task of this one. */
  async function offer(agent, more = {}) {
    const parent_task_id = await submit(agent);
    const worker = { tenant: agent.tenant, source: `${agent.source}-worker` };
    const task_id = newId("task");
    const parties = {
      task_id,
      parent_task_id,
      delegated_by: agent.source,
      delegated_to: worker.source,
    };
    const payload = { task_id, parent_task_id };
    const say = (party, type, { fields = {}, body = {} } = {}) =>
      send(party, `delegation.${type}`, {
        ...parties,
        target: party === agent ? worker.source : agent.source,
        ...fields,
        payload: { ...payload, ...body },
      });
    await say(agent, "requested", { body: { work_description: "a hotel", ...more } });
    return { parent_task_id, task_id, worker, say };
  }

  /** A token for an accepted delegation; what is given out must be in the log. */
  async function token(agent, task_id) {
    const { result } = await ask(agent, "token", { task_id });
    if (result === undefined) return undefined;
    print({ kind: "token", tenant: agent.tenant, task: task_id, jti: result.jti });
    return result.token;
  }

  const tasks = {
    plain: async (agent) => {
      const task_id = await submit(agent);
      const child = await submit(agent, { parent_task_id: task_id });
      for (let count = 0; count < 3; count += 1) await send(agent, "task.progress", { task_id });
      await send(agent, "task.completed", { task_id: child });
      await send(agent, "task.completed", { task_id });
    },
    cascade: async (agent) => {
      const { root } = await tree(agent);
      await send(agent, "task.cancelled", { task_id: root });
    },
    failing: async (agent) => {
      const { root } = await tree(agent);
      await send(agent, "task.failed", { task_id: root, payload: { error: ERROR } });
    },
    asked: async (agent) => {
      const { root, leaf } = await tree(agent);
      const payload = { grace_period_ms: 150 };
      await send(agent, "task.cancel.requested", { task_id: root, payload });
      await send(agent, "task.cancelled", { task_id: leaf });
    },
    late: async (agent) => {
      await submit(agent, { payload: { timeout_ms: 300 } });
    },
    lateTree: async (agent) => {
      const task_id = await submit(agent, { payload: { timeout_ms: 1_500 } });
      await submit(agent, { parent_task_id: task_id });
    },
    race: async (agent) => {
      const { root, middle, leaf } = await tree(agent);
      await Promise.all([
        send(agent, "task.completed", { task_id: leaf }),
        send(agent, "task.cancelled", { task_id: middle }),
        send(agent, "task.cancelled", { task_id: root }),
        send(agent, "task.completed", { task_id: root }),
      ]);
    },
  };

  const delegations = {
    /** From the offer to the result, the worker in a session of its own. */
    handedOver: async (agent) => {
      const { parent_task_id, task_id, worker, say } = await offer(agent);
      const session_id = await openSession(worker);
      const fields = { session_id };
      await say(worker, "accepted", { fields });
      const handoff_token = await token(agent, task_id);
      await say(agent, "handoff.completed", { fields: { handoff_token } });
      await send(worker, "task.started", { task_id, session_id });
      await send(worker, "task.completed", { task_id, session_id });
      await closeSession(worker, session_id);
      await send(agent, "task.completed", { task_id: parent_task_id });
    },
    refused: async (agent) => {
      const { parent_task_id, say, worker } = await offer(agent);
      await say(worker, "rejected", { body: { reason: "at capacity" } });
      await send(agent, "task.completed", { task_id: parent_task_id });
    },
    /** Two processes of one name: one has the job. */
    contested: async (agent) => {
      const { parent_task_id, task_id, worker, say } = await offer(agent);
      const sessions = await Promise.all([openSession(worker), openSession(worker)]);
      await Promise.all(
        sessions.map((session_id) => say(worker, "accepted", { fields: { session_id } })),
      );
      const handoff_token = await token(agent, task_id);
      await say(agent, "handoff.completed", { fields: { handoff_token } });
      await send(agent, "task.cancelled", { task_id: parent_task_id });
      for (const session_id of sessions) await closeSession(worker, session_id);
    },
    /** Passed on after it was accepted: the first token is worth nothing any more. */
    escalated: async (agent) => {
      const { parent_task_id, task_id, worker, say } = await offer(agent);
      await say(worker, "accepted");
      const old = await token(agent, task_id);
      const chief = { tenant: agent.tenant, source: `${agent.source}-chief` };
      const to = { delegated_to: chief.source, target: chief.source };
      await say(agent, "escalated", { fields: to, body: { reason: "too slow" } });
      await say(chief, "accepted", { fields: { delegated_to: chief.source } });
      await say(agent, "handoff.completed", { fields: { ...to, handoff_token: old } });
      const handoff_token = await token(agent, task_id);
      await say(agent, "handoff.completed", { fields: { ...to, handoff_token } });
      await send(chief, "task.started", { task_id });
      await send(chief, "task.completed", { task_id });
      await send(agent, "task.completed", { task_id: parent_task_id });
    },
    /** Nobody takes it: its deadline ends it. */
    unanswered: async (agent) => {
      const deadline = new Date(Date.now() + 300).toISOString();
      const { parent_task_id } = await offer(agent, { deadline });
      await pass(600);
      await send(agent, "task.cancelled", { task_id: parent_task_id });
    },
    /** A session without a sign of life, which the service ends. */
    silent: async (agent) => {
      const session_id = await openSession(agent, 100);
      if (session_id === undefined) return;
      const task_id = newId("task");
      await send(agent, "task.submitted", { task_id, session_id });
      while (!isOver()) {
        const { result } = await ask(agent, "session", { session_id });
        if (result?.state === "error") break;
        await pass(ASK_AGAIN_MS);
      }
      await send(agent, "task.cancelled", { task_id });
    },
  };

  return { plain: { plain: tasks.plain }, all: { ...tasks, ...delegations } };
}
