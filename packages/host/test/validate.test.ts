/** Hostile input up to the payload: every message gets a refusal that is itself a valid envelope, or a counted drop. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { intakeSubject, type StoredMessage } from "@harmovela/bus";
import { checkEnvelope, checkPayload, checkType, checkVersion } from "@harmovela/envelope";
import fc from "fast-check";
import { toRejection } from "../src/answers.ts";
import { validate } from "../src/validate.ts";

const encoder = new TextEncoder();
const JUDGE = { domain: "tasks", service: "service:s" } as const;

function message(subject: string, body: unknown): StoredMessage {
  const data = body instanceof Uint8Array ? body : encoder.encode(JSON.stringify(body));
  return { seq: 7, time: 1_764_500_000_000, subject, data, header: () => "" };
}

const SUBJECT = intakeSubject({
  tenant: "acme",
  domain: "tasks",
  source: "agent:a",
  type: "task.progress",
});

const good = {
  spec_version: "0.2",
  id: "evt_1",
  type: "task.progress",
  source: "agent:a",
  created_at: "2026-11-30T10:00:00Z",
  payload: {},
};

function refusalOf(subject: string, body: unknown) {
  const result = validate(message(subject, body), JUDGE);
  assert.equal(result.kind, "refused");
  if (result.kind !== "refused") throw new Error("not refused");
  const { tenant, source, sent, error } = result;
  const context = { service: "service:s", tenant, source, intake: 7, at: 1_764_500_000_000 };
  const rejection = toRejection(context, sent, error, result.as);
  const parsed = checkEnvelope(JSON.parse(JSON.stringify(rejection)));
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.error.message);
  for (const check of [checkVersion, checkType, checkPayload]) {
    const checked = check(parsed.value);
    assert.ok(checked.ok, checked.ok ? "" : checked.error.message);
  }
  return { ...result, rejection };
}

describe("validate", () => {
  test("a good envelope is valid", () => {
    assert.equal(validate(message(SUBJECT, good), JUDGE).kind, "valid");
  });

  test("nobody speaks through the intake of a service in its own name", () => {
    const source = "service:s";
    const subject = intakeSubject({ tenant: "acme", domain: "tasks", source, type: good.type });
    const { error, isOccupying } = refusalOf(subject, { ...good, source });
    assert.equal(error.code, "unauthorized");
    assert.equal(isOccupying, false);
    const other = { ...good, source: "service:t" };
    assert.equal(validate(message(subject.replace(":s", ":t"), other), JUDGE).kind, "valid");
  });

  const disagreements: [string, object, string][] = [
    ["source", { source: "agent:b" }, "unauthorized"],
    ["type", { type: "task.started" }, "unauthorized"],
    ["tenant", { tenant_id: "other" }, "unauthorized"],
    ["a derived id", { id: "hv_01JDZ3Y7R8ABCDEFGHJKMNPQRS" }, "invalid_envelope"],
  ];
  for (const [what, change, code] of disagreements) {
    test(`${what}: refused without taking the id, and answered in the subject's tenant`, () => {
      const { error, isOccupying, rejection } = refusalOf(SUBJECT, { ...good, ...change });
      assert.equal(error.code, code);
      assert.equal(isOccupying, false);
      assert.ok(rejection.tenant_id === undefined || rejection.tenant_id === "acme");
      assert.equal(rejection.target, "agent:a");
    });
  }

  test("a type of another domain under this domain's intake is refused", () => {
    const subject = intakeSubject({
      tenant: "acme",
      domain: "tasks",
      source: "agent:a",
      type: "memory.fact.added",
    });
    const { error } = refusalOf(subject, { ...good, type: "memory.fact.added" });
    assert.equal(error.details?.field, "domain");
  });

  test("names that cannot be answered are dropped", () => {
    const subjects = [
      "hv.acme.in.tasks.a%0Ab.task.progress",
      `hv.acme.in.tasks.${"x".repeat(300)}.task.progress`,
      `hv.${"x".repeat(300)}.in.tasks.agent:a.task.progress`,
      "hv.%2D.in.tasks.agent:a.task.progress",
      "hv.-.in.tasks.agent:a.task.progress",
      "hv.acme.in.tasks.-.task.progress",
      "hv.acme.in.tasks.a%20b%2.task.progress",
      "hv.acme.in.tasks.%61.task.progress",
      "hv.acme.in.tasks.agent:a",
      "hv.acme.log.tasks.agent:a.-.task.progress",
    ];
    for (const subject of subjects) {
      assert.equal(validate(message(subject, good), JUDGE).kind, "dropped", subject);
    }
  });

  test("ids with control characters are not repeated in the refusal", () => {
    const { rejection } = refusalOf(SUBJECT, { ...good, id: "a\nb", task_id: "c\u0000" });
    assert.equal(rejection.causation_id, undefined);
    assert.equal(rejection.task_id, undefined);
  });

  test("5.2, 5.9 what is wrong in a request is said in its family's word, with what names it", () => {
    const correlation_id = "c1";
    const refused = (type: string, payload: unknown, more = {}) => {
      const subject = intakeSubject({ tenant: "acme", domain: "tasks", source: "agent:a", type });
      return refusalOf(subject, { ...good, ...more, type, payload }).rejection;
    };
    const command = refused("command.requested", { command: 5 }, { correlation_id });
    assert.equal(command.type, "command.rejected");
    const { reason, ...said } = command.payload as Record<string, unknown>;
    assert.equal(said.correlation_id, correlation_id);
    assert.equal(reason, (said.error as { message: string }).message);
    const query = refused("query.requested", { query_scope: [] });
    assert.equal(query.type, "query.rejected");
    assert.equal((query.payload as Record<string, unknown>).correlation_id, undefined);
    for (const filter of [{}, { types: 5 }, { types: ["x".repeat(70_000)], topic: 5 }]) {
      const { type, payload } = refused("subscription.requested", filter);
      assert.equal(type, "subscription.rejected");
      const { error, filter: told } = payload as { error: { code: string }; filter?: unknown };
      assert.equal(error.code, "subscription_rejected");
      assert.deepEqual(told, JSON.stringify(filter).length > 65_536 ? undefined : filter);
    }
    assert.equal(refused("subscription.requested", null).type, "subscription.rejected");
    const older = refused("subscription.requested", { types: "*" }, { spec_version: "9.9" });
    assert.equal(older.type, "event.rejected", "nothing is known of what another version means");
  });

  test("any bytes and any JSON get a refusal that is a valid envelope, or pass", () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.json().map((json) => encoder.encode(json)),
      fc
        .record(
          Object.fromEntries(
            [...Object.keys(good), "task_id", "tenant_id", "correlation_id", "session_id"].map(
              (key) => [key, fc.oneof(fc.jsonValue(), fc.constant((good as never)[key]))],
            ),
          ),
          { requiredKeys: [] },
        )
        .map((body) => encoder.encode(JSON.stringify(body))),
    );
    fc.assert(
      fc.property(anything, (bytes) => {
        if (validate(message(SUBJECT, bytes), JUDGE).kind === "refused") {
          refusalOf(SUBJECT, bytes);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
