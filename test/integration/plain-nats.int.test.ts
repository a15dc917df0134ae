/** What `docs/plain-nats.md` tells those who write an agent in another language is so, word for word. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTracker } from "@harmovela/belief-tracker";
import { parseIntakeSubject } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { type Domain, domainOf } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import { eventually } from "../chaos/deadline.ts";
import { Stage } from "./attack-stage.ts";
import type { PlainAgent } from "./plain-agent.ts";

const DEADLINE_MS = 30_000;
const AGENTS = ["agent:planner", "agent:hotels"] as const;
const TOKEN = "<result.token>";
const text = readFileSync(
  fileURLToPath(new URL("../../docs/plain-nats.md", import.meta.url)),
  "utf8",
);

interface Step {
  subject: string;
  kind: string;
  agent: string;
  /** As it stands there. */
  body: string;
  expected: string[];
}

/** "`subject` → `what comes back` …", and the body below it. */
const STEP = /^`(hv\.acme\.[^`]+)` → ([^\n]+)\n\n```json\n([\s\S]*?)```$/gm;
const steps: Step[] = [...text.matchAll(STEP)].map(([, subject = "", answer = "", body = ""]) => {
  const [, , kind = "", third = "", fourth = ""] = subject.split(".");
  const agent = kind === "in" ? fourth : third;
  const expected = [...answer.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
  return { subject, kind, agent, body, expected };
});
/** Subjects that somebody hears, said in the text without wildcards. */
const heard = [...text.matchAll(/`(hv\.acme\.ev\.[^`<>*]+)`/g)].map(([, subject = ""]) => subject);

test("the document has steps for every way to speak, and every block of JSON is one", () => {
  assert.deepEqual([...new Set(steps.map(({ kind }) => kind))].toSorted(), ["in", "live", "rpc"]);
  assert.equal(steps.length, text.match(/^```json$/gm)?.length);
  assert.ok(heard.length >= 5, heard.join());
});

test("the domain of a type is as the document says", () => {
  const [, said = ""] = /domain follows from the type: (.*)\. `id` is yours/.exec(text) ?? [];
  const families = [...said.matchAll(/`(\w+)` for ((?:`\w+\.` ?)+)/g)];
  assert.equal(families.length, 3, said);
  for (const [, domain, prefixes = ""] of families) {
    for (const [, prefix] of prefixes.matchAll(/`(\w+\.)`/g)) {
      assert.equal(domainOf(`${prefix}x`), domain);
    }
  }
  assert.equal(domainOf("task.submitted"), "tasks");
});

test("the verbs of each domain are those that its service answers", () => {
  const everywhere = ["status", "replay"];
  for (const { domain, reads, issueToken } of [
    createCoordinator(),
    createTracker(),
    createManager(),
    createAttester(),
  ]) {
    const row = new RegExp(`^\\| ${domain} +\\|(.*)\\|$`, "m").exec(text)?.[1] ?? "";
    const said = [...row.replace(/\{[^}]*\}/g, "").matchAll(/`(\w+)`/g)].map(([, verb]) => verb);
    const acts = said.filter((verb) => verb?.startsWith("checkpoint_"));
    const known = [...Object.keys(reads), ...(issueToken === undefined ? [] : ["token"]), ...acts];
    assert.deepEqual(said.toSorted(), known.toSorted(), domain);
    for (const verb of everywhere)
      assert.equal(said.includes(verb), false, "stands in a row above");
  }
});

describe("the conversation, with keys", () => {
  let stage: Stage;
  const agents = new Map<string, PlainAgent>();
  const subjects = new Set<string>();

  before(async () => {
    stage = await Stage.open(AGENTS.map((name) => ["acme", name] as const));
    for (const name of AGENTS) agents.set(name, await stage.agent("acme", name));
    const { nats } = agentOf("agent:planner");
    nats.subscribe("hv.acme.ev.>", {
      callback: (_error, { subject }) => void subjects.add(subject),
    });
    await nats.flush();
  });
  after(() => stage[Symbol.asyncDispose]());

  const agentOf = (name: string): PlainAgent => agents.get(name) ?? assert.fail(name);

  async function say({ subject, agent, body, expected }: Step, token: string): Promise<void> {
    const sent = body.replace(TOKEN, token);
    const { type, domain } = parseIntakeSubject(subject) ?? assert.fail(subject);
    assert.equal(domainOf(type ?? ""), domain, subject);
    const { type: verdict, payload } = await agentOf(agent).sayBytes(sent, subject);
    const [wanted, code] = expected;
    assert.equal(verdict, wanted, `${subject}: ${JSON.stringify(payload)}`);
    assert.equal(payload.error?.code, code, subject);
  }

  async function ask({ subject, agent, body, expected }: Step): Promise<JsonObject> {
    const [, , , , domain = "", verb = ""] = subject.split(".");
    const params = JSON.parse(body) as JsonObject;
    const answer = await agentOf(agent).ask(domain as Domain, verb, params);
    assert.equal(answer.error, undefined, JSON.stringify(answer));
    const [result, field] = (expected[0] ?? "").split(".");
    assert.equal(result, "result");
    const value = answer.result as JsonObject;
    assert.notEqual(field === undefined ? value : value[field], undefined, subject);
    return value;
  }

  test("every message is answered as it says, and what it says is heard is heard", async () => {
    let token = "";
    for (const step of steps) {
      if (step.kind === "in") await say(step, token);
      else if (step.kind === "live") agentOf(step.agent).nats.publish(step.subject, step.body);
      else {
        const result = await ask(step);
        if (typeof result.token === "string") token = result.token;
      }
    }
    await eventually(DEADLINE_MS, "all that is said to be heard", () =>
      heard.every((subject) => subjects.has(subject)) ? true : undefined,
    );
    for (const { violations } of agents.values()) assert.deepEqual(violations, []);
  });
});
