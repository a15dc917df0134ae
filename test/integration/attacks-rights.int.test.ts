/** Rights that are claimed and not had, and the record of who tried: what the broker forbids, and what a service refuses. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  AUDIT_STREAM,
  authFromFile,
  connectBus,
  HEADER,
  intakeSubject,
  rpcSubject,
} from "@harmovela/bus";
import { grantsFileOf, keyFile } from "@harmovela/cli";
import { type Domain, domainOf, type Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { readAudit, type Stored } from "../../packages/host/test/audit-log.ts";
import { eventually, within } from "../chaos/deadline.ts";
import { type Answer, envelope } from "../chaos/sender.ts";
import { accepted, DEADLINE_MS, refused } from "./attack-scene.ts";
import { Stage } from "./attack-stage.ts";
import { cli } from "./cli-process.ts";
import type { PlainAgent } from "./plain-agent.ts";

/** May submit and hear tasks; nothing else. */
const CLERK = "agent:clerk";
/** May say what it believes, and hears nothing. */
const SCRIBE = "agent:scribe";
const BOSS = "agent:boss";
const CLERK_SCOPES = ["write:tasks", "read:tasks", "subscribe:task.*"];

let stage: Stage;
let clerk: PlainAgent;
let scribe: PlainAgent;
let boss: PlainAgent;

before(async () => {
  stage = await Stage.open([
    ["acme", CLERK, { roles: ["publisher"], scopes: CLERK_SCOPES }],
    ["acme", SCRIBE, { scopes: ["write:beliefs"] }],
    ["acme", BOSS, { roles: ["operator"] }],
    ["beta", CLERK],
  ]);
  clerk = await stage.agent("acme", CLERK);
  scribe = await stage.agent("acme", SCRIBE);
  boss = await stage.agent("acme", BOSS);
});
after(() => stage[Symbol.asyncDispose]());

/** What the record must hold in the end, by the id of the envelope. */
const expected = new Map<string, { domain: Domain; fields: Partial<Stored> }>();

/** Refused by a service for want of a right. */
async function unauthorized(
  who: PlainAgent,
  sent: Envelope,
  check: string,
  answer: Promise<Answer> = who.say(sent),
): Promise<void> {
  const { type, payload } = await answer;
  assert.match(type, /rejected$/, JSON.stringify(payload));
  const { code, details } = payload.error as { code: string; details?: JsonObject };
  assert.deepEqual([code, details?.check], ["unauthorized", check]);
  const { tenant, name: source } = who;
  const fields = { tenant, source, verdict: "refused", code, check, type: sent.type } as const;
  expected.set(sent.id, { domain: domainOf(sent.type), fields });
}

/** A record of a question; written at most a second later. */
function recordOf(isIt: (record: Stored) => boolean): Promise<Stored> {
  return eventually(DEADLINE_MS, "a record in the audit", async () =>
    (await readAudit(stage.operator)).find(isIt),
  );
}

const submitted = (who: PlainAgent, more: Partial<Envelope>): Envelope =>
  envelope(who.name, "task.submitted", `task_${crypto.randomUUID()}`, more);

/** As a connection that may say anything: what the broker would have kept back reaches the service. */
async function pastTheBroker<T>(source: string, send: (inbox: string) => unknown): Promise<T> {
  const inbox = `_INBOX.acme.${source}.${crypto.randomUUID()}`;
  const answer = new Promise<T>((resolve) => {
    stage.operator.subscribe(inbox, ({ data }) =>
      resolve(JSON.parse(new TextDecoder().decode(data)) as T),
    );
  });
  await stage.operator.flush();
  await send(inbox);
  return within(DEADLINE_MS, "an answer", answer);
}

function sayPastTheBroker(source: string, sent: Envelope): Promise<Answer> {
  const { type } = sent;
  const subject = intakeSubject({ tenant: "acme", domain: domainOf(type), source, type });
  const data = Buffer.from(JSON.stringify(sent));
  return pastTheBroker(source, (inbox) =>
    stage.operator.store(subject, { [HEADER.replyTo]: inbox }, data),
  );
}

function askPastTheBroker(source: string, verb: string, params: JsonObject): Promise<JsonObject> {
  const subject = rpcSubject({ tenant: "acme", source, domain: "tasks", verb });
  return pastTheBroker(source, (reply) =>
    stage.operator.nats.publish(subject, JSON.stringify(params), { reply }),
  );
}

describe("claims in a body", () => {
  test("invented roles, and those of another", async () => {
    for (const roles of [["operator"], ["publisher", "tenant-admin"], ["root"]]) {
      await unauthorized(clerk, submitted(clerk, { roles }), "roles");
    }
    await accepted(clerk.say(submitted(clerk, { roles: ["publisher"] })));
  });

  test("another's actor", async () => {
    const sent = submitted(clerk, { actor_id: BOSS });
    await unauthorized(clerk, sent, "actor");
    const { fields } = expected.get(sent.id) ?? assert.fail();
    fields.actor = BOSS;
  });

  test("another tenant, in the body and as the one that is meant", async () => {
    await refused("unauthorized", clerk.say(submitted(clerk, { tenant_id: "beta" })));
    await unauthorized(clerk, submitted(clerk, { target_tenant_id: "beta" }), "governance");
    const across = { target: BOSS, correlation_id: "c", target_tenant_id: "beta" };
    await unauthorized(
      clerk,
      envelope(CLERK, "command.requested", "t", { ...across, payload: { command: "x" } }),
      "governance",
    );
  });

  test("an action that the roles of the connection do not grant, and one that they do", async () => {
    const asked = { requested_action: "task.manage", target_tenant_id: "acme" };
    await unauthorized(clerk, submitted(clerk, asked), "governance");
    await accepted(boss.say(submitted(boss, asked)));
  });

  test("scopes that the connection does not have", async () => {
    const command = { target: BOSS, correlation_id: crypto.randomUUID() };
    const payload = { command: "x", authorization_scope: ["write:beliefs"] };
    const sent = envelope(CLERK, "command.requested", "t", { ...command, payload });
    await unauthorized(clerk, sent, "authorization_scope");
  });
});

describe("the edge of a scope", () => {
  const wants = (types: unknown) =>
    envelope(CLERK, "subscription.requested", "t", { payload: { types } as JsonObject });

  test("subscribe:task.* covers what it matches and nothing wider", async () => {
    await accepted(clerk.say(wants(["task.*"])));
    await accepted(clerk.say(wants("task.cancel.requested")));
    for (const wider of ["*", "task.>", "*.started", ["task.*", "delegation.*"]]) {
      const sent = wants(wider);
      const answer = await clerk.say(sent);
      assert.equal(answer.type, "subscription.rejected", JSON.stringify(wider));
      await unauthorized(clerk, sent, "scope", Promise.resolve(answer));
    }
  });

  test("a domain that may not be written: the broker forbids it, and the service would not take it", async () => {
    const fact = envelope(CLERK, "memory.fact.added", "t", { payload: { fact_id: "f", value: 1 } });
    const subject = clerk.intake("memory.fact.added");
    clerk.nats.publish(subject, JSON.stringify(fact));
    await clerk.forbidden("publish", subject);
    await unauthorized(clerk, fact, "scope", sayPastTheBroker(CLERK, fact));
  });

  test("a question without the right to read: by the broker, by the service, recorded", async () => {
    const subject = rpcSubject({ tenant: "acme", source: SCRIBE, domain: "tasks", verb: "task" });
    scribe.nats.publish(subject, "{}", { reply: scribe.inbox() });
    await scribe.forbidden("publish", subject);
    const { error } = await askPastTheBroker(SCRIBE, "task", { task_id: "spied" });
    assert.equal((error as JsonObject).code, "unauthorized");
    const record = await recordOf(({ task_id }) => task_id === "spied");
    assert.deepEqual(
      [record.source, record.verb, record.verdict, record.check],
      [SCRIBE, "task", "refused", "scope"],
    );
  });

  test("entries of domains that may not be read are not heard", async () => {
    for (const subject of ["hv.acme.ev.beliefs.>", "hv.acme.ev.>", "hv.acme.ev.*.agent:boss.>"]) {
      clerk.nats.subscribe(subject);
      await clerk.forbidden("subscription", subject);
    }
    const heard = clerk.nats.subscribe("hv.acme.ev.tasks.>", { max: 1 });
    await clerk.nats.flush();
    await accepted(clerk.say(submitted(clerk, {})));
    for await (const { subject } of heard) assert.match(subject, /^hv\.acme\.ev\.tasks\./);
  });
});

describe("what a session is told", () => {
  test("security.v1 is in force, and these are its scopes", async () => {
    const heard = clerk.nats.subscribe("hv.acme.ev.tasks.*.*.session.>");
    await clerk.nats.flush();
    const payload = {
      session_id: "s",
      version: "0.2",
      capabilities: { profiles: ["harmovela.security.v1"] },
    };
    const opened = envelope(CLERK, "session.opened", "t", { session_id: "s", payload });
    await accepted(clerk.say(opened));
    const ready = (async () => {
      for await (const message of heard) {
        const said = message.json<Envelope>();
        if (said.type === "session.ready") return said;
      }
      return undefined;
    })();
    const said = (await within(DEADLINE_MS, "session.ready", ready))?.payload as JsonObject;
    const { auth, profiles } = said.capabilities as JsonObject;
    assert.deepEqual(auth, { required: true, scopes: CLERK_SCOPES });
    assert.deepEqual(profiles, ["harmovela.core.v1", "harmovela.security.v1"]);
  });

  test("counters and alarms of all tenants are for operators", async () => {
    const { status: seen } = await clerk.ask("tasks", "status");
    assert.deepEqual(Object.keys(seen as object).sort(), [
      ...["domain", "instance", "isReady", "isSettled", "position", "role", "service"],
    ]);
    const { status } = await askPastTheBroker("agent:ops", "status", {});
    assert.ok("counters" in (status as object));
  });
});

describe("the audit stream", () => {
  test("an agent does not hear it, write it, read it or take anything out", async () => {
    const earlier = await stage.operator.streamState(AUDIT_STREAM);
    for (const subject of ["hv.acme.audit.>", "hv.*.audit.>", "hv.>"]) {
      boss.nats.subscribe(subject);
      await boss.forbidden("subscription", subject);
    }
    for (const subject of [
      "hv.acme.audit.tasks.judged",
      "hv.-.audit.tasks.upto",
      ...["PURGE", "DELETE", "MSG.DELETE", "MSG.GET", "UPDATE", "INFO"].map(
        (verb) => `$JS.API.STREAM.${verb}.${AUDIT_STREAM}`,
      ),
      `$JS.API.CONSUMER.CREATE.${AUDIT_STREAM}`,
    ]) {
      boss.nats.publish(subject, JSON.stringify({ seq: 1 }), { reply: boss.inbox() });
      await boss.forbidden("publish", subject);
    }
    const later = await stage.operator.streamState(AUDIT_STREAM);
    assert.deepEqual([later?.created, later?.firstSeq], [earlier?.created, 1]);
  });

  test("a service writes its own domain and cannot take anything back", async () => {
    const writer = await connectBus({
      servers: stage.server.url,
      name: "stolen",
      auth: authFromFile(join(stage.folder, "tasks.writer.nk")),
    });
    try {
      for (const subject of [
        "hv.acme.audit.beliefs.judged",
        ...["PURGE", "DELETE", "MSG.DELETE", "UPDATE"].map(
          (verb) => `$JS.API.STREAM.${verb}.${AUDIT_STREAM}`,
        ),
      ]) {
        await assert.rejects(writer.request(subject, {}, Buffer.from("{}"), DEADLINE_MS), {
          code: "unauthorized",
        });
      }
    } finally {
      await writer.close();
    }
  });

  test("no record holds a payload, a token or a signature", async () => {
    const secret = `secret-${crypto.randomUUID()}`;
    const authorization = { scheme: "bearer", token: secret };
    const sent = submitted(clerk, { payload: { description: secret }, authorization });
    await clerk.say(sent);
    await clerk.ask("tasks", "task", { task_id: "x", handoff_token: secret });
    await recordOf(({ event_id }) => event_id === sent.id);
    await recordOf(({ verb, task_id }) => verb === "task" && task_id === "x");
    assert.doesNotMatch(JSON.stringify(await readAudit(stage.operator)), new RegExp(secret));
  });
});

test("every one that a service has refused is in the record, by whom, what and why", async () => {
  assert.equal(expected.size, 13);
  for (const [id, { domain, fields }] of expected) {
    const record = await eventually(DEADLINE_MS, id, async () =>
      (await readAudit(stage.operator, domain)).find(({ event_id }) => event_id === id),
    );
    for (const [field, value] of Object.entries(fields)) {
      assert.equal(record[field as keyof Stored], value, `${id} ${field}`);
    }
  }
});

test("an operator sees it on the command line; an agent's key shows nothing", async () => {
  const words = ["audit", "--server", stage.server.url];
  const asked = (key: string, ...more: string[]) =>
    cli([...words, ...more], { env: { HARMOVELA_KEY: join(stage.folder, key) } });
  const [seen, none] = await Promise.all([
    asked("operator.nk", "--json", "--tenant", "acme", "--source", CLERK, "--verdict", "refused"),
    asked(keyFile(["acme", BOSS])),
  ]);
  assert.equal(seen.stderr, "");
  const lines = seen.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Stored);
  assert.ok(lines.length >= 12);
  for (const { tenant, source, verdict } of lines) {
    assert.deepEqual([tenant, source, verdict], ["acme", CLERK, "refused"]);
  }
  assert.deepEqual([none.stdout, none.code], ["", 1]);
  assert.match(none.stderr, /unauthorized|not permitted|may not/i);
});

describe("grants that change", () => {
  test("take effect without a restart; a spoilt file changes nothing and is an alarm", async () => {
    const file = grantsFileOf(stage.config);
    const text = readFileSync(file, "utf8");
    const said = async (): Promise<string> => (await boss.say(submitted(boss, {}))).type;
    const turnsTo = (type: string) =>
      eventually(DEADLINE_MS, type, async () => ((await said()) === type ? true : undefined));
    const { grants } = JSON.parse(text) as { grants: { agent: string }[] };
    writeFileSync(file, JSON.stringify({ grants: grants.filter(({ agent }) => agent !== BOSS) }));
    await turnsTo("event.rejected");
    writeFileSync(file, "{");
    const [tasks] = stage.services;
    await eventually(DEADLINE_MS, "an alarm", async () => {
      assert.equal(await said(), "event.rejected");
      return (
        tasks?.host.status().alarms.some(({ alarm }) => /grants stay/.test(alarm)) || undefined
      );
    });
    writeFileSync(file, text);
    await turnsTo("event.acknowledged");
  });
});
